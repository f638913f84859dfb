import { LANGUAGES, TONES } from '../../../domain/agent/chat-request.ts'
import { LIVE_SORTS } from '../../../domain/feed/live-sort.ts'
import { wrap } from './wrap.ts'

/** Option of a conversation, with its choices. */
export interface TalkOption<Choice> {
  name: string
  about: string
  choices: readonly Choice[]
}

export const LANGUAGE = { name: 'language', about: 'language of the answers', choices: LANGUAGES }
export const TONE = { name: 'tone', about: 'tone of the answers', choices: TONES }
export const SORT = { name: 'sort', about: 'ranking used for questions', choices: LIVE_SORTS }

interface SlashCommand {
  /** Argument, as the help shows it. */
  takes?: string
  does: string
  /** Completions of its argument. */
  choices?: readonly string[]
}

const choiceHelp = ({ about, choices }: TalkOption<string>): Pick<SlashCommand, 'does' | 'choices'> => ({
  does: `${about}: ${choices.join(', ')}`,
  choices,
})

type SlashName =
  | 'help'
  | 'new'
  | 'retry'
  | 'sources'
  | 'history'
  | 'copy'
  | 'save'
  | 'lang'
  | 'tone'
  | 'sort'
  | 'item'
  | 'quota'
  | 'quit'

const SLASH_COMMANDS: Readonly<Record<SlashName, SlashCommand>> = {
  help: { does: 'show this list' },
  new: { does: 'start a new conversation in a new session' },
  retry: {
    does: 'ask the last question again; costs one message, and may return the cached answer',
  },
  sources: { does: 'list the sources of the last answer again' },
  history: { takes: '[WORDS]', does: 'search earlier questions; Ctrl-R does the same' },
  copy: { does: 'copy the last answer to the clipboard' },
  save: { takes: '[FILE]', does: 'save the conversation to a new Markdown file' },
  lang: { takes: '[LANGUAGE]', ...choiceHelp(LANGUAGE) },
  tone: { takes: '[TONE]', ...choiceHelp(TONE) },
  sort: { takes: '[SORT]', ...choiceHelp(SORT) },
  item: { takes: '[KEY]', does: 'chat about one item; without KEY, about the whole site' },
  quota: { does: 'show the remaining quotas and the budget' },
  quit: { does: 'quit; quit, exit and Ctrl-D do the same' },
}

function isSlashName(name: string): name is SlashName {
  return Object.hasOwn(SLASH_COMMANDS, name)
}

export type TypedLine =
  | { kind: 'question'; text: string }
  | { kind: 'command'; name: SlashName; argument: string }
  | { kind: 'unknown'; name: string }

/** Words that end other programs. */
const LEAVING = /^\s*(?:\/exit|quit|exit)\s*$/i

/** Parses a line. A path (`/etc/hosts …`) and a text of several lines are questions. */
export function parseTypedLine(text: string): TypedLine {
  if (LEAVING.test(text)) return { kind: 'command', name: 'quit', argument: '' }
  const [, name, argument = ''] = /^\s*\/([a-z]+)(?:[ \t]+(.*))?$/i.exec(text.trimEnd()) ?? []
  if (name === undefined) return { kind: 'question', text }
  const known = name.toLowerCase()
  return isSlashName(known)
    ? { kind: 'command', name: known, argument: argument.trim() }
    : { kind: 'unknown', name: known }
}

/** Returns the completions of the beginning of a line, each a whole line. */
export function completionsOf(line: string): string[] {
  const [, name = '', space = '', prefix = ''] = /^\/([a-z]*)(\s*)(\S*)$/.exec(line) ?? []
  if (!line.startsWith('/')) return []
  if (space === '') {
    return Object.entries(SLASH_COMMANDS)
      .map(([each, { takes }]) => `/${each}${takes === undefined ? '' : ' '}`)
      .filter((each) => each.startsWith(line))
  }
  const choices = isSlashName(name) ? (SLASH_COMMANDS[name].choices ?? []) : []
  return choices.filter((each) => each.startsWith(prefix)).map((each) => `/${name} ${each}`)
}

/** Columns before the description of a command. */
const HELP_INDENT = 20

/** Returns the text of `/help`, in lines of at most `columns` columns if a word fits beside the names. */
export function helpText(columns: number): string {
  const rows = Object.entries(SLASH_COMMANDS).map(([name, { takes = '', does }]) => [
    `/${name} ${takes}`.trim(),
    does,
  ])
  const keys = [
    ['\\ at the end', 'continue on the next line; pasted text stays one message'],
    ['Ctrl-R', 'search earlier questions'],
    ['Ctrl-C', 'stop the answer; twice at the prompt: quit'],
    ['Ctrl-D', 'quit'],
  ]
  return [...rows, ...keys]
    .flatMap(([what = '', does = '']) => {
      const indent = { first: `  ${what.padEnd(HELP_INDENT - 3)} `, rest: ' '.repeat(HELP_INDENT) }
      return wrap([{ text: does, styles: [] }], Math.max(columns, 2 * HELP_INDENT), {
        indent,
        colored: false,
      })
    })
    .map(({ text }) => text)
    .join('\n')
}
