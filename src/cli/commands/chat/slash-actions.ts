import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { LANGUAGES, TONES } from '../../../domain/agent/chat-request.ts'
import { isItemKey } from '../../../domain/agent/conversation.ts'
import type { Turn } from '../../../domain/agent/conversation.ts'
import { LIVE_SORTS } from '../../../domain/feed/columns.ts'
import { KeyStream } from './keyboard.ts'
import { interruptible } from './show-turn.ts'
import type { Place } from './show-turn.ts'
import type { Conversing } from './talk.ts'
import { clockTime, declinedWords, isChatRefusal, quotaWords } from './words.ts'
import { noteColumns, wrap } from './wrap.ts'

type Command = Said & { kind: 'command' }

/** More than this a terminal does not take to its clipboard. */
const CLIPBOARD_MAX_BYTES = 50_000

/** Does what a command says, but for /quit and /retry. @throws the signal's reason */
export async function runSlashCommand(place: Place, conversing: Conversing, command: Command): Promise<void> {
  const { talk, say } = place
  const { argument } = command
  const { wishes } = talk
  switch (command.name) {
    case 'help':
      return say(helpText(noteColumns(place.context.stderr)))
    case 'new':
      talk.forget()
      return say('a new talk; nothing of the one before is sent any more')
    case 'copy':
      return copy(place)
    case 'save':
      return save(place, argument)
    case 'lang': {
      const chosen = await choose(
        place,
        'Language of the answers',
        LANGUAGES,
        argument,
        wishes.settings.preferredLanguage,
      )
      if (chosen === null) return
      talk.wishes = { ...wishes, settings: { ...wishes.settings, preferredLanguage: chosen } }
      return say(`language: ${chosen}`)
    }
    case 'tone': {
      const chosen = await choose(place, 'Tone of the answers', TONES, argument, wishes.settings.tone)
      if (chosen === null) return
      talk.wishes = { ...wishes, settings: { ...wishes.settings, tone: chosen } }
      return say(`tone: ${chosen}`)
    }
    case 'sort': {
      const chosen = await choose(place, 'Ranking a question is seen in', LIVE_SORTS, argument, wishes.sort)
      if (chosen === null) return
      talk.wishes = { ...wishes, sort: chosen }
      return say(`sort: ${chosen}`)
    }
    case 'item':
      return setItem(place, conversing, argument)
    case 'quota':
      return quota(place, conversing)
    case 'retry':
    case 'quit':
  }
}

/** One of several, given or picked from a list; null when it is none of them, or nothing was picked. */
async function choose<Choice extends string>(
  { context, keyboard, say }: Place,
  message: string,
  choices: readonly Choice[],
  given: string,
  current: Choice,
): Promise<Choice | null> {
  if (given !== '') {
    const chosen = choices.find((choice) => choice === given.toLowerCase())
    if (chosen === undefined) say(`${given} is none of ${choices.join(', ')}`)
    return chosen ?? null
  }
  const { isCancel, select } = await import('@clack/prompts')
  const input = new KeyStream()
  const { stderr: output, signal } = context
  const options = choices.map((value) => ({ value: value as string }))
  const picked = select<string>({ message, options, initialValue: current, input, output, signal })
  keyboard.give({ keys: (text) => input.feed(text), paste: () => undefined })
  const value = await picked.finally(() => keyboard.release())
  signal.throwIfAborted()
  return isCancel(value) ? null : (choices.find((choice) => choice === value) ?? null)
}

/** By the terminal itself (OSC 52), which works over ssh too and starts no program. */
function copy({ context, talk, say }: Place): void {
  const answer = talk.turns.at(-1)?.answer
  if (answer === undefined) return say('there is no answer yet')
  const bytes = Buffer.from(answer)
  if (bytes.byteLength > CLIPBOARD_MAX_BYTES)
    return say('the answer is too long for a clipboard; /save writes it to a file')
  context.stderr.write(`\x1b]52;c;${bytes.toString('base64')}\x07`)
  say('sent to the clipboard of the terminal; where the terminal does not take it, /save writes it to a file')
}

async function save({ context, talk, say }: Place, named: string): Promise<void> {
  if (talk.turns.length === 0) return say('there is nothing to save yet')
  const stamp = new Date().toISOString().replaceAll(/[-:]/g, '').slice(0, 15)
  // A shell would do this; here there is none.
  const meant = named.replace(/^~(?=\/|$)/, () => context.config.home)
  const path = resolve(context.cwd, named === '' ? `dash-chat-${stamp}.md` : meant)
  try {
    // A file that is there is never written over.
    await writeFile(path, markdownOf(talk.turns), { flag: 'wx' })
    say(`saved to ${path}`)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    say(`not saved: ${why}`)
  }
}

function markdownOf(turns: readonly Turn[]): string {
  return turns
    .map(({ question, answer }) => `> ${question.trim().replaceAll('\n', '\n> ')}\n\n${answer.trim()}\n`)
    .join('\n')
}

function setItem({ talk, say }: Place, { config }: Conversing, key: string): void {
  if (key === '') {
    talk.wishes = { ...talk.wishes, itemKey: null }
    return say('about the whole site')
  }
  if (!config.itemChat) return say('this server offers no chat about one item')
  if (!isItemKey(key)) return say(`${key} is no save key, like hn-29387264`)
  talk.wishes = { ...talk.wishes, itemKey: key }
  say(`about the item ${key}; a key that the server does not know is answered about the whole site`)
}

async function quota(place: Place, { api }: Conversing): Promise<void> {
  const { context, talk, base, say } = place
  const ending = interruptible(place)
  try {
    const [{ quotas }, { budget }] = await Promise.all([api.config(ending.signal), api.status(ending.signal)])
    const left = talk.quota
      ? `${quotaWords({ ...talk.quota, quotas })} left`
      : `${quotas.messagesPerSession} a session, ${quotas.messagesPerDay} a day`
    say(`${left}; budget ${budget}, as of ${clockTime(Date.now(), Date.now())}`)
  } catch (error) {
    context.signal.throwIfAborted()
    if (ending.signal.aborted) say('stopped')
    else if (isChatRefusal(error))
      say(declinedWords(error, base, Date.now(), { isTalk: true, quota: talk.quota }).text)
    else throw error
  } finally {
    ending.release()
  }
}

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
