import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { CommonOptions } from '@clack/prompts'
import { isItemKey } from '../../../domain/agent/conversation.ts'
import type { Turn, TurnOptions } from '../../../domain/agent/conversation.ts'
import { messageOf } from '../../../domain/refusal.ts'
import { knowsHyperlinks } from '../../hyperlink.ts'
import { inOneLine } from '../../terminal.ts'
import { KeyStream } from './keyboard.ts'
import { markdownRows } from './markdown.ts'
import { interruptible } from './show-turn.ts'
import type { ChatContext } from './show-turn.ts'
import { LANGUAGE, SORT, TONE, helpText } from './slash-commands.ts'
import type { TalkOption, TypedLine } from './slash-commands.ts'
import { clockTime, refusalMessage, isChatRefusal, quotaMessage } from './messages.ts'
import { Sources } from './sources.ts'
import { noteColumns } from './wrap.ts'

/** Most bytes that terminals accept for their clipboard. */
const CLIPBOARD_MAX_BYTES = 50_000

/**
 * Runs a slash command, except /history, /quit and /retry.
 *
 * @throws the signal's reason
 */
export async function runSlashCommand(
  chat: ChatContext,
  { name, argument }: TypedLine & { kind: 'command' },
): Promise<void> {
  const { talk, say } = chat
  const { settings, sort } = talk.preferences
  switch (name) {
    case 'help':
      return say(helpText(noteColumns(chat.context.stderr)))
    case 'new':
      talk.forget()
      return say('new conversation; earlier messages are no longer sent')
    case 'sources':
      return sources(chat)
    case 'copy':
      return copy(chat)
    case 'save':
      return save(chat, argument)
    case 'lang':
      return choose(chat, LANGUAGE, argument, settings.preferredLanguage, (preferredLanguage) => ({
        settings: { ...settings, preferredLanguage },
      }))
    case 'tone':
      return choose(chat, TONE, argument, settings.tone, (tone) => ({ settings: { ...settings, tone } }))
    case 'sort':
      return choose(chat, SORT, argument, sort, (chosen) => ({ sort: chosen }))
    case 'item':
      return setItem(chat, argument)
    case 'quota':
      return quota(chat)
    case 'history':
    case 'retry':
    case 'quit':
  }
}

/** Sets an option to one of its choices, given or picked from a list. An unknown choice changes nothing. */
async function choose<Choice extends string>(
  chat: ChatContext,
  { name, about, choices }: TalkOption<Choice>,
  argument: string,
  current: Choice,
  optionsOf: (chosen: Choice) => Partial<TurnOptions>,
): Promise<void> {
  const { talk, say } = chat
  const picked = argument === '' ? await pick(chat, about, choices, current) : argument.toLowerCase()
  const chosen = choices.find((choice) => choice === picked)
  if (chosen !== undefined) {
    talk.preferences = { ...talk.preferences, ...optionsOf(chosen) }
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
 * @param questions oldest first
 * @param typed initial words
 * @returns the chosen question; null if none was chosen
 * @throws the signal's reason
 */
export async function searchHistory(
  chat: ChatContext,
  questions: readonly string[],
  typed: string,
): Promise<string | null> {
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

/** Lists the sources of the last answer again. */
function sources({ context, talk, say }: ChatContext): void {
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
function copy({ context, talk, say }: ChatContext): void {
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

async function save({ context, talk, say }: ChatContext, named: string): Promise<void> {
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

function setItem({ talk, config, say }: ChatContext, key: string): void {
  if (key === '') {
    talk.preferences = { ...talk.preferences, itemKey: null }
    return say('chatting about the whole site')
  }
  if (!config.itemChat) return say('this server offers no chat about one item')
  if (!isItemKey(key)) return say(`${JSON.stringify(key)} is not a save key such as hn-29387264`)
  talk.preferences = { ...talk.preferences, itemKey: key }
  say(`chatting about the item ${key}; if the server does not know the key, the chat is about the whole site`)
}

async function quota(chat: ChatContext): Promise<void> {
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
