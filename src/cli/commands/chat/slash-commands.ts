import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { wrapAnsi } from 'fast-wrap-ansi'
import { LANGUAGES, TONES } from '../../../domain/agent/chat-request.ts'
import { isItemKey } from '../../../domain/agent/conversation.ts'
import type { Turn, TurnOptions } from '../../../domain/agent/conversation.ts'
import { LIVE_SORTS } from '../../../domain/feed/live-sort.ts'
import { errorCode, messageOf } from '../../../domain/refusal.ts'
import { clockTime, isChatRefusal, quotaMessage, refusalMessage } from './messages.ts'
import { showTurn } from './show-turn.ts'
import type { ChatContext } from './show-turn.ts'

interface SlashCommand {
  /** Argument, as the help shows it. */
  takes?: string
  does: string
  /** Completions of its argument. */
  choices?: readonly string[]
  /** Absent for the command that ends the conversation. */
  run?: (chat: ChatContext, argument: string) => Promise<void> | void
}

/**
 * A command that sets an option of the conversation to one of its choices, or names the current one.
 *
 * @param of returns the current choice
 * @param change returns the changed options
 */
function optionCommand<Choice extends string>(
  name: string,
  about: string,
  choices: readonly Choice[],
  of: (preferences: TurnOptions) => Choice,
  change: (preferences: TurnOptions, chosen: Choice) => TurnOptions,
): SlashCommand {
  const list = choices.join(', ')
  return {
    takes: `[${name.toUpperCase()}]`,
    does: `${about}: ${list}`,
    choices,
    run({ talk, say }, argument) {
      if (argument === '') return say(`${name}: ${of(talk.preferences)}; choose from ${list}`)
      const chosen = choices.find((choice) => choice === argument.toLowerCase())
      if (chosen === undefined) return say(`unknown ${name} ${JSON.stringify(argument)}; choose from ${list}`)
      talk.preferences = change(talk.preferences, chosen)
      say(`${name}: ${chosen}`)
    },
  }
}

const SLASH_COMMANDS: Readonly<Record<string, SlashCommand>> = {
  help: { does: 'show this list', run: ({ context, say }) => say(helpText(context.stderr.columns - 1)) },
  new: { does: 'start a new conversation in a new session', run: startOver },
  retry: {
    does: 'ask the last question again; costs one message, and may return the cached answer',
    run: retry,
  },
  save: { takes: '[FILE]', does: 'save the conversation to a new Markdown file', run: save },
  lang: optionCommand(
    'language',
    'language of the answers',
    LANGUAGES,
    ({ settings }) => settings.preferredLanguage,
    (preferences, preferredLanguage) => ({
      ...preferences,
      settings: { ...preferences.settings, preferredLanguage },
    }),
  ),
  tone: optionCommand(
    'tone',
    'tone of the answers',
    TONES,
    ({ settings }) => settings.tone,
    (preferences, tone) => ({ ...preferences, settings: { ...preferences.settings, tone } }),
  ),
  sort: optionCommand(
    'sort',
    'ranking used for questions',
    LIVE_SORTS,
    ({ sort }) => sort,
    (preferences, sort) => ({ ...preferences, sort }),
  ),
  item: { takes: '[KEY]', does: 'chat about one item; without KEY, about the whole site', run: setItem },
  quota: { does: 'show the remaining quotas and the budget', run: quota },
  quit: { does: 'quit; quit, exit and Ctrl-D do the same' },
}

/** Drops the earlier messages; the next request reports again what it leaves out. */
function startOver(chat: ChatContext): void {
  chat.last = null
  chat.talk.forget()
  chat.say('new conversation; earlier messages are no longer sent')
}

function retry(chat: ChatContext): Promise<void> | void {
  const question = chat.talk.lastQuestion
  return question === null ? chat.say('no question to ask again yet') : showTurn(chat, question, true)
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
    say(
      `not saved: ${errorCode(error) === 'EEXIST' ? `${path} exists; choose another name` : messageOf(error)}`,
    )
  }
}

function markdownOf(turns: readonly Turn[]): string {
  return turns
    .map(({ question, answer }) => `> ${question.trim().replaceAll('\n', '\n> ')}\n\n${answer.trim()}\n`)
    .join('\n')
}

function setItem(chat: ChatContext, key: string): void {
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

async function quota({ context, prompt, talk, api, say }: ChatContext): Promise<void> {
  const signal = prompt.interruptible()
  try {
    const [{ quotas }, { budget }] = await Promise.all([api.config(signal), api.status(signal)])
    const left = talk.quota
      ? `${quotaMessage({ ...talk.quota, quotas })} left`
      : `${quotas.messagesPerSession} messages per session, ${quotas.messagesPerDay} per day`
    say(`${left}; budget ${budget}, as of ${clockTime(Date.now(), Date.now())}`)
  } catch (error) {
    context.signal.throwIfAborted()
    if (signal.aborted) say('stopped')
    else if (isChatRefusal(error))
      say(refusalMessage(error, api.base, Date.now(), { isTalk: true, quota: talk.quota }).text)
    else throw error
  }
}

interface TypedCommand {
  name: string
  argument: string
}

/** Words that end other programs. */
const LEAVING = /^\s*(?:\/exit|quit|exit)\s*$/i

/** Parses a command; null for a question, as a path (`/etc/hosts …`) and a text of several lines are. */
export function parseSlashCommand(text: string): TypedCommand | null {
  if (LEAVING.test(text)) return { name: 'quit', argument: '' }
  const [, name, argument = ''] = /^\s*\/([a-z]+)(?:[ \t]+(.*))?$/i.exec(text.trimEnd()) ?? []
  return name === undefined ? null : { name: name.toLowerCase(), argument: argument.trim() }
}

/**
 * Runs a slash command, except /quit.
 *
 * @throws the signal's reason
 */
export async function runSlashCommand(chat: ChatContext, { name, argument }: TypedCommand): Promise<void> {
  const command = Object.hasOwn(SLASH_COMMANDS, name) ? SLASH_COMMANDS[name] : undefined
  if (command === undefined) chat.say(`unknown command /${name}; /help lists the commands`)
  await command?.run?.(chat, argument)
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
  ['\\ at the end', 'continue on the next line; pasted lines stay one message'],
  ['Ctrl-C', 'stop the answer; twice at the prompt: quit'],
  ['Ctrl-D', 'quit'],
]

/** Returns the text of `/help`, in lines of at most `columns` columns if a word fits beside the names. */
export function helpText(columns: number): string {
  const commands = Object.entries(SLASH_COMMANDS)
  const rows = commands.map(([name, { takes = '', does }]) => [`/${name} ${takes}`.trim(), does])
  const width = Math.max(columns - HELP_INDENT, HELP_INDENT)
  return [...rows, ...KEYS]
    .map(([what = '', does = '']) => {
      const lines = wrapAnsi(does, width).replaceAll('\n', `\n${' '.repeat(HELP_INDENT)}`)
      return `  ${what.padEnd(HELP_INDENT - 3)} ${lines}`
    })
    .join('\n')
}
