import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { isItemKey } from '../../../domain/agent/conversation.ts'
import type { Turn, Wishes } from '../../../domain/agent/conversation.ts'
import { messageOf } from '../../../domain/refusal.ts'
import { KeyStream } from './keyboard.ts'
import { interruptible } from './show-turn.ts'
import type { ChatContext } from './show-turn.ts'
import { LANGUAGE, SORT, TONE, helpText } from './slash-commands.ts'
import type { Choices, TypedLine } from './slash-commands.ts'
import { clockTime, refusalMessage, isChatRefusal, quotaMessage } from './messages.ts'
import { noteColumns } from './wrap.ts'

/** More than this a terminal does not take to its clipboard. */
const CLIPBOARD_MAX_BYTES = 50_000

/** Does what a command says, but for /quit and /retry. @throws the signal's reason */
export async function runSlashCommand(
  chat: ChatContext,
  { name, argument }: TypedLine & { kind: 'command' },
): Promise<void> {
  const { talk, say } = chat
  const { settings, sort } = talk.wishes
  switch (name) {
    case 'help':
      return say(helpText(noteColumns(chat.context.stderr)))
    case 'new':
      talk.forget()
      return say('a new talk; nothing of the one before is sent any more')
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
    case 'retry':
    case 'quit':
  }
}

/** Sets a wish to one of its choices, given or picked from a list; it stays as it is when none is. */
async function choose<Choice extends string>(
  chat: ChatContext,
  { name, about, choices }: Choices<Choice>,
  given: string,
  current: Choice,
  optionsOf: (chosen: Choice) => Partial<Wishes>,
): Promise<void> {
  const { talk, say } = chat
  const picked = given === '' ? await pick(chat, about, choices, current) : given.toLowerCase()
  const chosen = choices.find((choice) => choice === picked)
  if (chosen !== undefined) {
    talk.wishes = { ...talk.wishes, ...optionsOf(chosen) }
    say(`${name}: ${chosen}`)
  } else if (given !== '') say(`${given} is none of ${choices.join(', ')}`)
}

async function pick(
  { context, keyboard }: ChatContext,
  about: string,
  choices: readonly string[],
  current: string,
): Promise<string | null> {
  const { isCancel, select } = await import('@clack/prompts')
  const input = new KeyStream()
  const { stderr: output, signal } = context
  const message = about.charAt(0).toUpperCase() + about.slice(1)
  const options = choices.map((value) => ({ value }))
  const picked = select<string>({ message, options, initialValue: current, input, output, signal })
  keyboard.give({ keys: (text) => input.feed(text), paste: () => undefined })
  const value = await picked.finally(() => keyboard.release())
  signal.throwIfAborted()
  return isCancel(value) ? null : value
}

/** By the terminal itself (OSC 52), which works over ssh too and starts no program. */
function copy({ context, talk, say }: ChatContext): void {
  const answer = talk.turns.at(-1)?.answer
  if (answer === undefined) return say('there is no answer yet')
  const bytes = Buffer.from(answer)
  if (bytes.byteLength > CLIPBOARD_MAX_BYTES)
    return say('the answer is too long for a clipboard; /save writes it to a file')
  context.stderr.write(`\x1b]52;c;${bytes.toString('base64')}\x07`)
  say('sent to the clipboard of the terminal; where the terminal does not take it, /save writes it to a file')
}

async function save({ context, talk, say }: ChatContext, named: string): Promise<void> {
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
    say(`not saved: ${messageOf(error)}`)
  }
}

function markdownOf(turns: readonly Turn[]): string {
  return turns
    .map(({ question, answer }) => `> ${question.trim().replaceAll('\n', '\n> ')}\n\n${answer.trim()}\n`)
    .join('\n')
}

function setItem({ talk, config, say }: ChatContext, key: string): void {
  if (key === '') {
    talk.wishes = { ...talk.wishes, itemKey: null }
    return say('about the whole site')
  }
  if (!config.itemChat) return say('this server offers no chat about one item')
  if (!isItemKey(key)) return say(`${key} is no save key, like hn-29387264`)
  talk.wishes = { ...talk.wishes, itemKey: key }
  say(`about the item ${key}; a key that the server does not know is answered about the whole site`)
}

async function quota(chat: ChatContext): Promise<void> {
  const { context, talk, api, say } = chat
  const ending = interruptible(chat)
  try {
    const [{ quotas }, { budget }] = await Promise.all([api.config(ending.signal), api.status(ending.signal)])
    const left = talk.quota
      ? `${quotaMessage({ ...talk.quota, quotas })} left`
      : `${quotas.messagesPerSession} a session, ${quotas.messagesPerDay} a day`
    say(`${left}; budget ${budget}, as of ${clockTime(Date.now(), Date.now())}`)
  } catch (error) {
    context.signal.throwIfAborted()
    if (ending.signal.aborted) say('stopped')
    else if (isChatRefusal(error))
      say(refusalMessage(error, api.base, Date.now(), { isTalk: true, quota: talk.quota }).text)
    else throw error
  } finally {
    ending.release()
  }
}
