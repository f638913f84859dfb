import { LANGUAGES, TONES } from '../../../domain/agent/chat-request.ts'
import { LIVE_SORTS } from '../../../domain/feed/live-sort.ts'
import { wrap } from './wrap.ts'

interface SlashCommand {
  /** What may stand behind it, as help shows it. */
  takes: string
  does: string
  /** What it can be completed with. */
  choices: readonly string[]
}

/** Everything that can be said beside a question, in the order help lists it. */
const SLASH_COMMANDS = {
  help: { takes: '', does: 'this list', choices: [] },
  new: { takes: '', does: 'begin another talk, in another session', choices: [] },
  retry: {
    takes: '',
    does: 'ask the last question again; right after an answer that brings the kept one back, and costs a message',
    choices: [],
  },
  copy: { takes: '', does: "put the last answer on the terminal's clipboard", choices: [] },
  save: { takes: '[FILE]', does: 'write the talk to a Markdown file', choices: [] },
  lang: { takes: '[LANGUAGE]', does: `language of the answers: ${LANGUAGES.join(', ')}`, choices: LANGUAGES },
  tone: { takes: '[TONE]', does: `tone of the answers: ${TONES.join(', ')}`, choices: TONES },
  sort: {
    takes: '[SORT]',
    does: `ranking a question is seen in: ${LIVE_SORTS.join(', ')}`,
    choices: LIVE_SORTS,
  },
  item: {
    takes: '[KEY]',
    does: 'talk about one item; without a key about the whole site again',
    choices: [],
  },
  quota: { takes: '', does: 'what is left of the quotas, and how the budget stands', choices: [] },
  quit: { takes: '', does: 'leave, as quit, exit and Ctrl-D do', choices: [] },
} as const satisfies Record<string, SlashCommand>

type SlashName = keyof typeof SLASH_COMMANDS

export type Said =
  | { kind: 'question'; text: string }
  | { kind: 'command'; name: SlashName; argument: string }
  | { kind: 'unknown'; name: string }

/** What leaves in other programs. */
const LEAVING = /^\s*(?:\/exit|quit|exit)\s*$/i

/** The meaning of a line. A path (`/etc/hosts …`) and a text of several lines are questions. */
export function parseSaid(text: string): Said {
  if (LEAVING.test(text)) return { kind: 'command', name: 'quit', argument: '' }
  const [, name, argument = ''] = /^\s*\/([a-z]+)(?:[ \t]+(.*))?$/i.exec(text.trimEnd()) ?? []
  if (name === undefined) return { kind: 'question', text }
  const known = name.toLowerCase()
  if (!Object.hasOwn(SLASH_COMMANDS, known)) return { kind: 'unknown', name: known }
  return { kind: 'command', name: known as SlashName, argument: argument.trim() }
}

/** What the beginning of a line may become, each a whole line. */
export function completionsOf(line: string): string[] {
  const [, name = '', space = '', begun = ''] = /^\/([a-z]*)(\s*)(\S*)$/.exec(line) ?? []
  if (!line.startsWith('/')) return []
  if (space === '') {
    return Object.entries(SLASH_COMMANDS)
      .map(([each, { takes }]) => `/${each}${takes === '' ? '' : ' '}`)
      .filter((each) => each.startsWith(line))
  }
  const command = Object.hasOwn(SLASH_COMMANDS, name) ? SLASH_COMMANDS[name as SlashName] : null
  return (command?.choices ?? []).filter((each) => each.startsWith(begun)).map((each) => `/${name} ${each}`)
}

/** Columns before what a command does. */
const HELP_INDENT = 20

/** The list that `/help` shows, in lines of at most `columns` where these hold a word beside the names. */
export function helpText(columns: number): string {
  const rows = Object.entries(SLASH_COMMANDS).map(([name, { takes, does }]) => [
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
