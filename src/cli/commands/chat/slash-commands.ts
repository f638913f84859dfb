import { LANGUAGES, TONES } from '../../../domain/agent/chat-request.ts'
import { LIVE_SORTS } from '../../../domain/feed/live-sort.ts'
import type { ChatContext } from './show-turn.ts'
import {
  choose,
  copy,
  quota,
  retry,
  save,
  searchQuestions,
  setItem,
  sources,
  startOver,
} from './slash-actions.ts'
import type { Preference } from './slash-actions.ts'
import { noteColumns, wrap } from './wrap.ts'

interface SlashCommand {
  /** Argument, as the help shows it. */
  takes?: string
  does: string
  /** Completions of its argument. */
  choices?: readonly string[]
  /** Absent for the command that ends the conversation. */
  run?: (chat: ChatContext, argument: string) => Promise<void> | void
}

function preferenceCommand<Choice extends string>(preference: Preference<Choice>): SlashCommand {
  const { name, about, choices } = preference
  return {
    takes: `[${name.toUpperCase()}]`,
    does: `${about}: ${choices.join(', ')}`,
    choices,
    run: (chat, argument) => choose(chat, preference, argument),
  }
}

const SLASH_COMMANDS: Readonly<Record<string, SlashCommand>> = {
  help: { does: 'show this list', run: ({ context, say }) => say(helpText(noteColumns(context.stderr))) },
  new: { does: 'start a new conversation in a new session', run: startOver },
  retry: {
    does: 'ask the last question again; costs one message, and may return the cached answer',
    run: retry,
  },
  sources: { does: 'list the sources of the last answer again', run: sources },
  history: {
    takes: '[WORDS]',
    does: 'search earlier questions; Ctrl-R does the same',
    run: async (chat, words) => void (chat.draft = (await searchQuestions(chat, words)) ?? ''),
  },
  copy: { does: 'copy the last answer to the clipboard', run: copy },
  save: { takes: '[FILE]', does: 'save the conversation to a new Markdown file', run: save },
  lang: preferenceCommand({
    name: 'language',
    about: 'language of the answers',
    choices: LANGUAGES,
    of: ({ settings }) => settings.preferredLanguage,
    changes: (preferredLanguage, { settings }) => ({ settings: { ...settings, preferredLanguage } }),
  }),
  tone: preferenceCommand({
    name: 'tone',
    about: 'tone of the answers',
    choices: TONES,
    of: ({ settings }) => settings.tone,
    changes: (tone, { settings }) => ({ settings: { ...settings, tone } }),
  }),
  sort: preferenceCommand({
    name: 'sort',
    about: 'ranking used for questions',
    choices: LIVE_SORTS,
    of: ({ sort }) => sort,
    changes: (sort) => ({ sort }),
  }),
  item: { takes: '[KEY]', does: 'chat about one item; without KEY, about the whole site', run: setItem },
  quota: { does: 'show the remaining quotas and the budget', run: quota },
  quit: { does: 'quit; quit, exit and Ctrl-D do the same' },
}

export type TypedLine =
  | { kind: 'question'; text: string }
  | { kind: 'command'; name: string; argument: string }
  | { kind: 'unknown'; name: string }

/** Words that end other programs. */
const LEAVING = /^\s*(?:\/exit|quit|exit)\s*$/i

/** Parses a line. A path (`/etc/hosts …`) and a text of several lines are questions. */
export function parseTypedLine(text: string): TypedLine {
  if (LEAVING.test(text)) return { kind: 'command', name: 'quit', argument: '' }
  const [, typed, argument = ''] = /^\s*\/([a-z]+)(?:[ \t]+(.*))?$/i.exec(text.trimEnd()) ?? []
  if (typed === undefined) return { kind: 'question', text }
  const name = typed.toLowerCase()
  return Object.hasOwn(SLASH_COMMANDS, name)
    ? { kind: 'command', name, argument: argument.trim() }
    : { kind: 'unknown', name }
}

/**
 * Runs a slash command, except /quit.
 *
 * @throws the signal's reason
 */
export async function runSlashCommand(
  chat: ChatContext,
  { name, argument }: TypedLine & { kind: 'command' },
): Promise<void> {
  await SLASH_COMMANDS[name]?.run?.(chat, argument)
}

/** Returns the completions of the beginning of a line, each a whole line. */
export function completionsOf(line: string): string[] {
  const [, name, space = '', prefix = ''] = /^\/([a-z]*)(\s*)(\S*)$/.exec(line) ?? []
  if (name === undefined) return []
  if (space === '') {
    return Object.entries(SLASH_COMMANDS)
      .map(([each, { takes }]) => `/${each}${takes === undefined ? '' : ' '}`)
      .filter((each) => each.startsWith(line))
  }
  const choices = Object.hasOwn(SLASH_COMMANDS, name) ? (SLASH_COMMANDS[name]?.choices ?? []) : []
  return choices.filter((each) => each.startsWith(prefix)).map((each) => `/${name} ${each}`)
}

/** Columns before the description of a command. */
const HELP_INDENT = 20

const KEYS = [
  ['\\ at the end', 'continue on the next line; pasted text stays one message'],
  ['Ctrl-R', 'search earlier questions'],
  ['Ctrl-C', 'stop the answer; twice at the prompt: quit'],
  ['Ctrl-D', 'quit'],
]

/** Returns the text of `/help`, in lines of at most `columns` columns if a word fits beside the names. */
export function helpText(columns: number): string {
  const commands = Object.entries(SLASH_COMMANDS)
  const rows = commands.map(([name, { takes = '', does }]) => [`/${name} ${takes}`.trim(), does])
  return [...rows, ...KEYS]
    .flatMap(([what = '', does = '']) => {
      const indent = { first: `  ${what.padEnd(HELP_INDENT - 3)} `, rest: ' '.repeat(HELP_INDENT) }
      const width = Math.max(columns, 2 * HELP_INDENT)
      return wrap([{ text: does, styles: [] }], width, { indent, colored: false })
    })
    .map(({ text }) => text)
    .join('\n')
}
