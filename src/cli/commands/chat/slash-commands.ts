import { LANGUAGES, TONES } from '../../../domain/agent/chat-request.ts'
import { LIVE_SORTS } from '../../../domain/feed/live-sort.ts'
import { wrap } from './wrap.ts'

/** A wish with a few choices. */
export interface Choices<Choice> {
  name: string
  about: string
  choices: readonly Choice[]
}

export const LANGUAGE = { name: 'language', about: 'language of the answers', choices: LANGUAGES }
export const TONE = { name: 'tone', about: 'tone of the answers', choices: TONES }
export const SORT = { name: 'sort', about: 'ranking a question is seen in', choices: LIVE_SORTS }

interface SlashCommand {
  /** What may stand behind it, as help shows it. */
  takes?: string
  does: string
  /** What it can be completed with. */
  choices?: readonly string[]
}

const choosing = ({ about, choices }: Choices<string>): Pick<SlashCommand, 'does' | 'choices'> => ({
  does: `${about}: ${choices.join(', ')}`,
  choices,
})

type SlashName =
  'help' | 'new' | 'retry' | 'copy' | 'save' | 'lang' | 'tone' | 'sort' | 'item' | 'quota' | 'quit'

const SLASH_COMMANDS: Readonly<Record<SlashName, SlashCommand>> = {
  help: { does: 'this list' },
  new: { does: 'begin another talk, in another session' },
  retry: {
    does: 'ask the last question again; right after an answer that brings the kept one back, and costs a message',
  },
  copy: { does: "put the last answer on the terminal's clipboard" },
  save: { takes: '[FILE]', does: 'write the talk to a Markdown file' },
  lang: { takes: '[LANGUAGE]', ...choosing(LANGUAGE) },
  tone: { takes: '[TONE]', ...choosing(TONE) },
  sort: { takes: '[SORT]', ...choosing(SORT) },
  item: { takes: '[KEY]', does: 'talk about one item; without a key about the whole site again' },
  quota: { does: 'what is left of the quotas, and how the budget stands' },
  quit: { does: 'leave, as quit, exit and Ctrl-D do' },
}

function isSlashName(name: string): name is SlashName {
  return Object.hasOwn(SLASH_COMMANDS, name)
}

export type TypedLine =
  | { kind: 'question'; text: string }
  | { kind: 'command'; name: SlashName; argument: string }
  | { kind: 'unknown'; name: string }

/** What leaves in other programs. */
const LEAVING = /^\s*(?:\/exit|quit|exit)\s*$/i

/** The meaning of a line. A path (`/etc/hosts …`) and a text of several lines are questions. */
export function parseTypedLine(text: string): TypedLine {
  if (LEAVING.test(text)) return { kind: 'command', name: 'quit', argument: '' }
  const [, name, argument = ''] = /^\s*\/([a-z]+)(?:[ \t]+(.*))?$/i.exec(text.trimEnd()) ?? []
  if (name === undefined) return { kind: 'question', text }
  const known = name.toLowerCase()
  return isSlashName(known)
    ? { kind: 'command', name: known, argument: argument.trim() }
    : { kind: 'unknown', name: known }
}

/** What the beginning of a line may become, each a whole line. */
export function completionsOf(line: string): string[] {
  const [, name = '', space = '', begun = ''] = /^\/([a-z]*)(\s*)(\S*)$/.exec(line) ?? []
  if (!line.startsWith('/')) return []
  if (space === '') {
    return Object.entries(SLASH_COMMANDS)
      .map(([each, { takes }]) => `/${each}${takes === undefined ? '' : ' '}`)
      .filter((each) => each.startsWith(line))
  }
  const choices = isSlashName(name) ? (SLASH_COMMANDS[name].choices ?? []) : []
  return choices.filter((each) => each.startsWith(begun)).map((each) => `/${name} ${each}`)
}

/** Columns before what a command does. */
const HELP_INDENT = 20

/** The list that `/help` shows, in lines of at most `columns` where these hold a word beside the names. */
export function helpText(columns: number): string {
  const rows = Object.entries(SLASH_COMMANDS).map(([name, { takes = '', does }]) => [
    `/${name} ${takes}`.trim(),
    does,
  ])
  const keys = [
    ['\\ at the end', 'goes on in the next line; a paste stays one message'],
    ['Ctrl-C', 'stops the answer; twice at the prompt it leaves'],
    ['Ctrl-D', 'leaves'],
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
