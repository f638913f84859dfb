import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { isItemKey } from '../../../domain/agent/conversation.ts'
import type { Turn, TurnOptions } from '../../../domain/agent/conversation.ts'
import { messageOf } from '../../../domain/refusal.ts'
import { KeyStream } from './keyboard.ts'
import { interruptible } from './show-turn.ts'
import type { Place } from './show-turn.ts'
import { LANGUAGE, SORT, TONE, helpText } from './slash-commands.ts'
import type { Choices, Said } from './slash-commands.ts'
import { clockTime, declinedWords, isChatRefusal, quotaWords } from './messages.ts'
import { noteColumns } from './wrap.ts'

/** More than this a terminal does not take to its clipboard. */
const CLIPBOARD_MAX_BYTES = 50_000

/** Does what a command says, but for /quit and /retry. @throws the signal's reason */
export async function runSlashCommand(
  place: Place,
  { name, argument }: Said & { kind: 'command' },
): Promise<void> {
  const { talk, say } = place
  const { settings, sort } = talk.wishes
  switch (name) {
    case 'help':
      return say(helpText(noteColumns(place.context.stderr)))
    case 'new':
      talk.forget()
      return say('a new talk; nothing of the one before is sent any more')
    case 'copy':
      return copy(place)
    case 'save':
      return save(place, argument)
    case 'lang':
      return choose(place, LANGUAGE, argument, settings.preferredLanguage, (preferredLanguage) => ({
        settings: { ...settings, preferredLanguage },
      }))
    case 'tone':
      return choose(place, TONE, argument, settings.tone, (tone) => ({ settings: { ...settings, tone } }))
    case 'sort':
      return choose(place, SORT, argument, sort, (chosen) => ({ sort: chosen }))
    case 'item':
      return setItem(place, argument)
    case 'quota':
      return quota(place)
    case 'retry':
    case 'quit':
  }
}

/** Sets a wish to one of its choices, given or picked from a list; it stays as it is when none is. */
async function choose<Choice extends string>(
  place: Place,
  { name, about, choices }: Choices<Choice>,
  given: string,
  current: Choice,
  wishOf: (chosen: Choice) => Partial<TurnOptions>,
): Promise<void> {
  const { talk, say } = place
  const picked = given === '' ? await pick(place, about, choices, current) : given.toLowerCase()
  const chosen = choices.find((choice) => choice === picked)
  if (chosen !== undefined) {
    talk.wishes = { ...talk.wishes, ...wishOf(chosen) }
    say(`${name}: ${chosen}`)
  } else if (given !== '') say(`${given} is none of ${choices.join(', ')}`)
}

async function pick(
  { context, keyboard }: Place,
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
    say(`not saved: ${messageOf(error)}`)
  }
}

function markdownOf(turns: readonly Turn[]): string {
  return turns
    .map(({ question, answer }) => `> ${question.trim().replaceAll('\n', '\n> ')}\n\n${answer.trim()}\n`)
    .join('\n')
}

function setItem({ talk, config, say }: Place, key: string): void {
  if (key === '') {
    talk.wishes = { ...talk.wishes, itemKey: null }
    return say('about the whole site')
  }
  if (!config.itemChat) return say('this server offers no chat about one item')
  if (!isItemKey(key)) return say(`${key} is no save key, like hn-29387264`)
  talk.wishes = { ...talk.wishes, itemKey: key }
  say(`about the item ${key}; a key that the server does not know is answered about the whole site`)
}

async function quota(place: Place): Promise<void> {
  const { context, talk, api, say } = place
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
      say(declinedWords(error, api.base, Date.now(), { isTalk: true, quota: talk.quota }).text)
    else throw error
  } finally {
    ending.release()
  }
}
