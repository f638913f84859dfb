import { randomBytes } from 'node:crypto'
import {
  CHAT_KEY_BYTES,
  CHAT_KEY_NAME_MAX_LENGTH,
  CHAT_KEY_QUOTA_MAX,
  digestOfKey,
  formatChatKey,
  parseKeyName,
} from '../../../domain/agent/credentials.ts'
import type { StoredChatKey } from '../../../domain/agent/credentials.ts'
import { Refusal } from '../../../domain/refusal.ts'
import { dayOf, formatInstant } from '../../../domain/time.ts'
import type { CommandContext } from '../../context.ts'
import { existingStores, prepareFolders } from '../../data-folder.ts'
import { EXIT } from '../../exit-codes.ts'
import { flagValue, wholeFlag } from '../../settings/environment.ts'

interface NewKeyFlags {
  name: string
  perDay: string
  perMinute: string
}

export async function newChatKeyCommand(context: CommandContext, flags: NewKeyFlags): Promise<number> {
  const { config, container, terminal } = context
  const name = nameOf('--name', flags.name)
  const perDay = wholeFlag('--per-day', flags.perDay, CHAT_KEY_QUOTA_MAX)
  const perMinute = wholeFlag('--per-minute', flags.perMinute, CHAT_KEY_QUOTA_MAX)
  if (terminal.quiet && !terminal.json)
    throw new Refusal('usage', '--quiet would hide the key, which is shown only once; remove --quiet')
  prepareFolders(config, false)
  const key = formatChatKey(randomBytes(CHAT_KEY_BYTES))
  const digest = digestOfKey(key) ?? ''
  const stored = { name, digest, perDay, perMinute, createdAt: Date.now() }
  if (!(await (await container.chatKeys()).create(stored))) {
    const advice = `choose another name, or end that key with dash chat-key revoke ${name}`
    throw refused(`an active key has the name ${name}; ${advice}`)
  }
  terminal.note(`the key of ${name} is shown only now; store it in the server that uses it`)
  terminal.result({ name, key }, key)
  return EXIT.done
}

export async function listChatKeysCommand({ config, container, terminal }: CommandContext): Promise<number> {
  const isStored = existingStores(config).state
  const keys = isStored ? (await (await container.chatKeys()).list(dayOf(Date.now()))).map(entryOf) : []
  const lines = keys.length === 0 ? ['no keys; create one with dash chat-key new'] : keys.map(lineOf)
  terminal.result(keys, lines.join('\n'))
  return EXIT.done
}

export async function revokeChatKeyCommand(
  { config, container, terminal }: CommandContext,
  _flags: object,
  [given = '']: readonly string[],
): Promise<number> {
  const name = nameOf('name', given)
  const keys = existingStores(config).state ? await container.chatKeys() : null
  const now = Date.now()
  const revoked = (await keys?.revoke(name, now)) ?? false
  const isKnown = revoked || ((await keys?.list(dayOf(now)))?.some((key) => key.name === name) ?? false)
  if (!isKnown) throw refused(`no key has the name ${name}; dash chat-key list shows all keys`)
  terminal.result({ name, revoked }, revoked ? `revoked ${name}` : `${name} was already revoked`)
  return EXIT.done
}

function nameOf(flag: string, text: string): string {
  const rule = `1 to ${CHAT_KEY_NAME_MAX_LENGTH} letters, digits, dots, hyphens or underscores`
  return flagValue(flag, text, rule, parseKeyName)
}

function refused(detail: string): Refusal<'chat_key_refused'> {
  return new Refusal('chat_key_refused', detail)
}

/** A key with its times as text. */
type Entry = ReturnType<typeof entryOf>

function entryOf({ createdAt, revokedAt, ...key }: StoredChatKey) {
  return {
    ...key,
    createdAt: formatInstant(createdAt),
    revokedAt: revokedAt === null ? null : formatInstant(revokedAt),
  }
}

function lineOf({ name, perDay, perMinute, usedToday, createdAt, revokedAt }: Entry): string {
  const state = revokedAt === null ? `${usedToday} of ${perDay} used today` : `revoked ${revokedAt}`
  return `${name}: ${state}, ${perMinute} a minute, created ${createdAt}`
}
