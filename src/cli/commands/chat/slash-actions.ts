import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { CommonOptions } from '@clack/prompts'
import { isItemKey } from '../../../domain/agent/conversation.ts'
import type { Turn, TurnOptions } from '../../../domain/agent/conversation.ts'
import { messageOf } from '../../../domain/refusal.ts'
import { knowsHyperlinks } from '../../hyperlink.ts'
import { inOneLine } from '../../terminal.ts'
import { KeyStream } from './keyboard.ts'
import { Sources, markdownRows } from './markdown.ts'
import { interruptible, showTurn } from './show-turn.ts'
import type { ChatContext } from './show-turn.ts'
import { clockTime, refusalMessage, isChatRefusal, quotaMessage } from './messages.ts'
import { noteColumns } from './wrap.ts'

/** Most bytes that terminals accept for their clipboard. */
const CLIPBOARD_MAX_BYTES = 50_000

/** Option of a conversation, with its choices. */
export interface Preference<Choice extends string> {
  name: string
  about: string
  choices: readonly Choice[]
  of: (preferences: TurnOptions) => Choice
  changes: (chosen: Choice, preferences: TurnOptions) => Partial<TurnOptions>
}

/** Sets a preference to one of its choices, given or picked from a list. An unknown choice changes nothing. */
export async function choose<Choice extends string>(
  chat: ChatContext,
  { name, about, choices, of, changes }: Preference<Choice>,
  argument: string,
): Promise<void> {
  const { talk, say } = chat
  const { preferences } = talk
  const picked = argument === '' ? await pick(chat, about, choices, of(preferences)) : argument.toLowerCase()
  const chosen = choices.find((choice) => choice === picked)
  if (chosen !== undefined) {
    talk.preferences = { ...preferences, ...changes(chosen, preferences) }
    say(`${name}: ${chosen}`)
  } else if (argument !== '')
    say(`unknown ${name} ${JSON.stringify(argument)}; choose from ${choices.join(', ')}`)
}

async function pick(
  chat: ChatContext,
  about: string,
  choices: readonly string[],
  current: string,
): Promise<string | null> {
  const { select } = await import('@clack/prompts')
  const message = about.charAt(0).toUpperCase() + about.slice(1)
  const options = choices.map((value) => ({ value }))
  return fromKeyboard(chat, (streams) =>
    select<string>({ message, options, initialValue: current, ...streams }),
  )
}

const QUESTIONS_SHOWN = 8

/**
 * Searches the question history: a list of the questions with all typed words, the newest first.
 *
 * @param typed initial words
 * @returns the chosen question; null if none was chosen
 * @throws the signal's reason
 */
export async function searchQuestions(chat: ChatContext, typed: string): Promise<string | null> {
  const questions = chat.questions.list()
  if (questions.length === 0) {
    chat.say('no earlier questions yet')
    return null
  }
  const { autocomplete } = await import('@clack/prompts')
  const options = questions.toReversed().map((value) => ({ value, label: inOneLine(value) }))
  return fromKeyboard(chat, (streams) =>
    autocomplete<string>({
      message: 'Search earlier questions',
      options,
      filter: (search, { value }) => hasWords(value, search),
      initialUserInput: typed,
      maxItems: QUESTIONS_SHOWN,
      ...streams,
    }),
  )
}

function hasWords(question: string, search: string): boolean {
  const text = question.toLowerCase()
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word))
}

/** Runs a prompt with the keyboard of the conversation. Returns null if it was cancelled. */
async function fromKeyboard(
  { context, keyboard }: ChatContext,
  prompt: (
    streams: Pick<CommonOptions, 'input' | 'output' | 'signal'>,
  ) => Promise<string | symbol | undefined>,
): Promise<string | null> {
  const input = new KeyStream()
  const { stderr: output, signal } = context
  const prompted = prompt({ input, output, signal })
  keyboard.give({ keys: (text) => input.feed(text), paste: () => undefined })
  const value = await prompted.finally(() => keyboard.release())
  signal.throwIfAborted()
  return typeof value === 'string' ? value : null
}

/** Drops the earlier messages; the next request reports again what it leaves out. */
export function startOver(chat: ChatContext): void {
  chat.last = null
  chat.talk.forget()
  chat.say('new conversation; earlier messages are no longer sent')
}

export function retry(chat: ChatContext): Promise<void> | void {
  const question = chat.talk.lastQuestion
  return question === null ? chat.say('no question to ask again yet') : showTurn(chat, question, true)
}

/** Lists the sources of the last answer again. */
export function sources({ context, talk, say }: ChatContext): void {
  const { stderr, env, terminal } = context
  const answer = talk.turns.at(-1)?.answer
  if (answer === undefined) return say('no answer yet')
  const found = new Sources()
  const options = {
    columns: noteColumns(stderr),
    colored: terminal.colored,
    linked: knowsHyperlinks(stderr, env),
  }
  markdownRows(answer, { ...options, sources: found })
  const rows = found.rows(options)
  if (rows.length === 0) return say('the last answer has no links')
  stderr.write(rows.map(({ text }) => `${text}\r\n`).join(''))
}

/** Copies the last answer through the terminal (OSC 52), which works over ssh too and starts no program. */
export function copy({ context, talk, say }: ChatContext): void {
  const answer = talk.turns.at(-1)?.answer
  if (answer === undefined) return say('no answer to copy yet')
  const bytes = Buffer.from(answer)
  if (bytes.byteLength > CLIPBOARD_MAX_BYTES)
    return say('the answer is too long for the clipboard; /save writes it to a file')
  context.stderr.write(`\x1b]52;c;${bytes.toString('base64')}\x07`)
  say(
    'sent to the clipboard; if your terminal does not support this, /save writes the conversation to a file',
  )
}

export async function save({ context, talk, say }: ChatContext, named: string): Promise<void> {
  if (talk.turns.length === 0) return say('nothing to save yet')
  const stamp = new Date().toISOString().replaceAll(/[-:]/g, '').slice(0, 15)
  // No shell expands `~` here.
  const expanded = named.replace(/^~(?=\/|$)/, () => context.config.home)
  const path = resolve(context.cwd, named === '' ? `dash-chat-${stamp}.md` : expanded)
  try {
    // An existing file is never overwritten.
    await writeFile(path, markdownOf(talk.turns), { flag: 'wx' })
    say(`saved to ${path}`)
  } catch (error) {
    const exists = error instanceof Error && 'code' in error && error.code === 'EEXIST'
    say(`not saved: ${exists ? `${path} exists; choose another name` : messageOf(error)}`)
  }
}

function markdownOf(turns: readonly Turn[]): string {
  return turns
    .map(({ question, answer }) => `> ${question.trim().replaceAll('\n', '\n> ')}\n\n${answer.trim()}\n`)
    .join('\n')
}

export function setItem(chat: ChatContext, key: string): void {
  const { talk, config, say } = chat
  chat.last = null
  if (key === '') {
    talk.preferences = { ...talk.preferences, itemKey: null }
    return say('chatting about the whole site')
  }
  if (!config.itemChat) return say('this server offers no chat about one item')
  if (!isItemKey(key)) return say(`${JSON.stringify(key)} is not a save key such as hn-29387264`)
  talk.preferences = { ...talk.preferences, itemKey: key }
  say(`chatting about the item ${key}; if the server does not know the key, the chat is about the whole site`)
}

export async function quota(chat: ChatContext): Promise<void> {
  const { context, talk, api, say } = chat
  const interrupt = interruptible(chat)
  try {
    const [{ quotas }, { budget }] = await Promise.all([
      api.config(interrupt.signal),
      api.status(interrupt.signal),
    ])
    const left = talk.quota
      ? `${quotaMessage({ ...talk.quota, quotas })} left`
      : `${quotas.messagesPerSession} messages per session, ${quotas.messagesPerDay} per day`
    say(`${left}; budget ${budget}, as of ${clockTime(Date.now(), Date.now())}`)
  } catch (error) {
    context.signal.throwIfAborted()
    if (interrupt.signal.aborted) say('stopped')
    else if (isChatRefusal(error))
      say(refusalMessage(error, api.base, Date.now(), { isTalk: true, quota: talk.quota }).text)
    else throw error
  } finally {
    interrupt.release()
  }
}
