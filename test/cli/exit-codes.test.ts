import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { refusalMessage } from '../../src/cli/commands/chat/messages.ts'
import { describeError, exitCodeOf, exitCodeOfStop } from '../../src/cli/exit-codes.ts'
import type { ChatApiRefusal, AGENT_ERRORS } from '../../src/domain/agent/schema.ts'
import { Refusal, StorageFault } from '../../src/domain/refusal.ts'
/** Exit codes of commands by refusal code. */
const OF_REFUSAL: Record<string, number> = {
  address_unavailable: 69,
  archive_damaged: 65,
  clock_behind: 1,
  configuration: 78,
  copy_refused: 1,
  input_unreadable: 1,
  // A command should have handled these two.
  invalid_cursor: 70,
  item_not_found: 70,
  lease_held: 75,
  lease_lost: 75,
  chat_key_refused: 1,
  port_taken: 69,
  snapshot_damaged: 74,
  source_unavailable: 69,
  storage_damaged: 74,
  storage_unavailable: 74,
  title_not_vouched: 1,
  usage: 64,
}

/** Exit codes of `dash chat` with one question, by refusal code. */
const OF_CHAT: Record<ChatApiRefusal | (typeof AGENT_ERRORS)[number], number> = {
  answer_cut: 69,
  disabled: 69,
  forbidden_origin: 1,
  human_verification_failed: 1,
  internal_error: 69,
  invalid_json: 1,
  invalid_session: 1,
  misconfigured: 69,
  no_user_message: 1,
  not_found: 1,
  payload_too_large: 1,
  rate_limited: 69,
  server_foreign: 69,
  server_unreachable: 69,
}

function withCode(code: string): Error {
  return Object.assign(new Error('failed'), { code })
}

describe('the exit code of a command', () => {
  test.each(Object.entries(OF_REFUSAL))('the refusal %s has the exit code %i', (code, exitCode) => {
    expect(exitCodeOf(new Refusal(code, 'why'))).toBe(exitCode)
  })

  test.each([
    ...'ENOSPC EDQUOT EACCES EPERM EROFS EIO EMFILE ENFILE ENOENT ENOTDIR ELOOP EFBIG ECONNRESET EPIPE'.split(
      ' ',
    ),
    ...'SQLITE_BUSY SQLITE_CORRUPT SERVER_ERROR HRANA_WEBSOCKET_ERROR UND_ERR_SOCKET'.split(' '),
  ])('the fault %s of a store has the exit code 74, however deep it is nested', (code) => {
    expect(exitCodeOf(withCode(code))).toBe(74)
    expect(exitCodeOf(new Error('outer', { cause: withCode(code) }))).toBe(74)
  })

  test('a fault of a store has the exit code 74, and any other error 70', () => {
    expect(exitCodeOf(new StorageFault('no answer'))).toBe(74)
    expect(exitCodeOf(new Error('outer', { cause: new StorageFault('no answer') }))).toBe(74)
    for (const error of [new Error('a bug'), withCode('ERR_ASSERTION'), withCode('XENOENT'), 'text', null])
      expect(exitCodeOf(error)).toBe(70)
  })

  test.each(Object.entries(OF_CHAT))('the chat refusal %s has the exit code %i', (code, exitCode) => {
    const refusal = new Refusal(code as ChatApiRefusal, 'why')
    const message = refusalMessage(refusal, 'http://dash.test', 0, { isTalk: false, quota: null })
    expect(message.exitCode).toBe(exitCode)
  })

  test.each([
    ['SIGHUP', 129],
    ['SIGINT', 130],
    ['SIGQUIT', 131],
    ['SIGTERM', 143],
  ])('a command ended by %s has the exit code %i', (name, exitCode) => {
    const stopping = new AbortController()
    stopping.abort(new DOMException(`stopped by ${name}`, 'AbortError'))
    expect(exitCodeOfStop(stopping.signal)).toBe(exitCode)
  })
})

test('every refusal code of a job, an adapter or a command has its exit code in a table', () => {
  const folders = ['adapters', 'cli', 'jobs'].map((name) => new URL(`../../src/${name}/`, import.meta.url))
  const files = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => new URL(name, folder)),
  )
  const raised = files.flatMap((file) => {
    const source = readFileSync(file, 'utf8')
    return [...source.matchAll(/new Refusal(?:<[^>]*>)?\(\s*'(\w+)'/g)].map(([, code = '']) => code)
  })
  const known = new Set([...Object.keys(OF_REFUSAL), ...Object.keys(OF_CHAT)])
  expect(raised.length).toBeGreaterThan(40)
  expect(raised.filter((code) => !known.has(code))).toEqual([])
})

test('a failed exchange is described by the error of the network', () => {
  const cause = new Error('connect ECONNREFUSED 192.0.2.0:443')
  expect(describeError(new TypeError('fetch failed', { cause }))).toBe(cause.message)
})

test.each(['EACCES', 'ENOENT'])(
  'a temporary folder that cannot be created, %s, is described with advice',
  (code) => {
    const cause = Object.assign(withCode(code), { syscall: 'mkdtemp' })
    expect(describeError(cause)).toBe('failed; set TMPDIR to a folder in which this user can write')
  },
)

test.each(['EACCES', 'EPERM'])(
  'a permission that this user does not have, %s, is described with advice',
  (code) => {
    const advice = /^failed; run the command as the owner, or grant access$/
    expect(describeError(new Error('outer', { cause: withCode(code) }))).toMatch(advice)
  },
)
