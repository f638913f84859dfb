import type { H3Event } from 'h3'
import { addressHash } from '../../domain/agent/client-address.ts'
import type { AgentRefusal } from '../../domain/agent/refusals.ts'
import type { AgentSession } from '../../domain/agent/schema.ts'
import { beginSession, SESSION_ID_BYTES } from '../../domain/agent/token.ts'
import { Refusal } from '../../domain/refusal.ts'
import { addDays, dayOf, formatInstant } from '../../domain/time.ts'
import { readBody } from '../request-body.ts'
import type { Callers } from './caller.ts'
import { SESSION_BODY_MAX_BYTES } from './contracts.ts'
import { fromQuotaStore } from './quota-store.ts'
import { runnable } from './runnable.ts'
import type { AgentPorts } from './service.ts'

/** Tries of one address within a minute to prove that it is human. */
const VERIFICATIONS_PER_MINUTE = 10

/**
 * A new session for whoever asks (docs/agent-chat.md); nothing of the caller is stored but, for two days, the random salt
 * its address was hashed with.
 *
 * @throws Refusal for the first check that fails, in the documented order
 */
export async function makeSession(
  ports: AgentPorts,
  callers: Callers,
  event: H3Event,
): Promise<AgentSession> {
  const { signer } = await runnable(ports)
  const origin = callers.origin(event)
  const token = verificationTokenOf(await readSessionBody(event))
  const now = ports.clock()
  const today = dayOf(now)
  const salt = await fromQuotaStore(ports.ledger.makeSalt(today, addDays(today, -1)))
  const address = addressHash(salt, callers.address(event))
  if (ports.verification && !(await isHuman(ports, token, address, new URL(origin).hostname))) {
    throw new Refusal<AgentRefusal>('human_verification_failed')
  }
  const payload = beginSession(
    ports.randomBytes(SESSION_ID_BYTES),
    now,
    ports.settings.sessionSeconds,
    address,
  )
  return {
    sessionToken: signer.sign(payload),
    expiresAt: formatInstant(payload.exp * 1000),
    tier: 'free',
    quotas: quotasOf(ports),
  }
}

export function quotasOf({ settings }: AgentPorts): AgentSession['quotas'] {
  const { messagesPerSession, messagesPerDay } = settings.limits
  return { messagesPerSession, messagesPerDay }
}

function readSessionBody(event: H3Event): Promise<string> {
  const refuse = (): Refusal<AgentRefusal> => new Refusal('invalid_json')
  return readBody(event, SESSION_BODY_MAX_BYTES, { tooLarge: refuse, malformed: refuse })
}

/** The token of a session request; null where there is none, or no body at all. */
function verificationTokenOf(body: string): string | null {
  if (body === '') return null
  const given = parseJson(body)
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new Refusal<AgentRefusal>('invalid_json')
  }
  const { verificationToken } = given as { verificationToken?: unknown }
  return typeof verificationToken === 'string' && verificationToken !== '' ? verificationToken : null
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The parser's own message repeats what it read.
    return null
  }
}

/** The verifier is asked only for a token, and by one address only so often. */
async function isHuman(
  { verification, ledger, clock }: AgentPorts,
  token: string | null,
  address: string,
  hostname: string,
): Promise<boolean> {
  if (!verification || token === null) return false
  if (!(await fromQuotaStore(ledger.countVerification(address, clock(), VERIFICATIONS_PER_MINUTE))))
    return false
  // Its answer is bounded in time by the verifier itself, to which too late is no.
  return verification.verifier.isHuman(token, hostname, new AbortController().signal)
}
