import { describe, expect, test } from 'vitest'
import { run } from '../../../support/dash.ts'
import { unreachableUrl } from '../../../support/local-source.ts'
import {
  delta,
  DONE,
  html,
  json,
  META,
  record,
  startScripted,
  stream,
  CONFIG,
} from '../../../support/scripted-server.ts'
import type { Responder } from '../../../support/scripted-server.ts'

const chat = (args: readonly string[], options: Parameters<typeof run>[1] = {}) =>
  run(['chat', ...args], options)

describe('dash chat with a question', () => {
  test('a request has item and sort, and the origin of the server it is sent to', async () => {
    const { url, requests } = await startScripted()
    const flags = ['--item', 'hn-29387264', '--sort', 'week']
    const answered = { code: 0, stdout: 'Hello\n', stderr: '' }
    expect(await chat(['--url', url, ...flags, 'What', 'is', 'new?'])).toEqual(answered)
    expect(JSON.parse(requests.at(-1)?.body ?? '')).toEqual({
      messages: [{ role: 'user', content: 'What is new?' }],
      scope: { type: 'item', key: 'hn-29387264' },
      sort: 'week',
      settings: { preferredLanguage: 'auto', tone: 'neutral' },
    })
    const { origin } = new URL(url)
    expect(requests.map(({ what, headers }) => [what, headers.origin, headers['content-type']])).toEqual([
      ['GET /api/agent/config', origin, undefined],
      ['POST /api/agent/session', origin, 'application/json'],
      ['POST /api/agent/chat', origin, 'application/json'],
    ])
  })

  test('a question may come from a pipe, and an empty one is refused', async () => {
    const { url, requests } = await startScripted()
    expect(await chat(['--url', url], { stdin: 'What is\nnew?\n' })).toMatchObject({ code: 0 })
    expect(JSON.parse(requests.at(-1)?.body ?? '')).toEqual({
      messages: [{ role: 'user', content: 'What is\nnew?' }],
      sort: 'trending',
      settings: { preferredLanguage: 'auto', tone: 'neutral' },
    })
    expect(await chat(['--url', url], { stdin: ' \n' })).toEqual({
      code: 64,
      stdout: '',
      stderr: 'error: the question is empty; run dash chat "QUESTION", or echo QUESTION | dash chat\n',
    })
  })

  test('every event is one line under --json, as the server sent it', async () => {
    const sent = [
      META,
      record('tool', { name: 'search_items', status: 'start' }),
      delta('Hel\u001b[2Jlo\u202e'),
      DONE,
    ]
    const { url } = await startScripted({ chat: stream(sent) })
    const { code, stdout } = await chat(['--json', '--url', url, 'x'])
    const lines = stdout.trimEnd().split('\n')
    expect(code).toBe(0)
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
      { event: 'meta', data: { remaining: { session: 19, day: 59 }, tier: 'free' } },
      { event: 'tool', data: { name: 'search_items', status: 'start' } },
      { event: 'delta', data: { text: 'Hel\u001b[2Jlo\u202e' } },
      { event: 'done', data: { usage: { in: 1, out: 1, cached: 0 } } },
    ])
    expect(stdout).not.toMatch(/[^\P{Cc}\n]|\p{Cf}/u)
  })

  test('an answer has no control characters, and notes name its labels and a cut question', async () => {
    const done = record('done', { usage: { in: 0, out: 0, cached: 0 }, degraded: true, cached: true })
    const { url } = await startScripted({ chat: stream([META, delta('a\u001b]0;x\u0007b\u009b2J'), done]) })
    const { stdout, stderr } = await chat(['--url', url, 'x'.repeat(2_001)])
    expect(stdout).toBe('a]0;xb2J\n')
    expect(stderr.split('\n')).toEqual([
      'the question is too long: only its first 2,000 characters are sent',
      expect.stringMatching(/^\(degraded answer: /),
      '(cached answer)',
      '',
    ])
    expect(await chat(['--quiet', '--url', url, 'x'])).toMatchObject({ stderr: '' })
  })
})

describe('the exit code', () => {
  const limited = (scope: string): Responder =>
    json({ error: 'rate_limited', scope, retryAfterSeconds: 60 }, 429)
  const declined = (error: string, status: number): Responder => json({ error }, status)
  const failed = stream([META, delta('Hel'), record('error', { error: 'timeout', code: 'idle' })])
  const cutOff = stream([META, delta('Hel')], 'reset')
  const proxyLimit = html(429, { 'retry-after': '60' })
  const verifying = json({ ...CONFIG, requireVerification: true })
  const openPage = /requires human verification, which a terminal cannot show; open http\S+\/ in a browser/

  test.each<[string, Parameters<typeof startScripted>[0], number, RegExp]>([
    ['a failed model', { chat: failed }, 69, /the model took too long \(timeout, idle\)/],
    ['an answer that broke off', { chat: cutOff }, 69, /connection broke during the answer/],
    ['the address limit', { chat: limited('ip') }, 69, /\(ip\); try again at .*\d\d:\d\d:\d\d/],
    [
      'a limit of a proxy',
      { chat: proxyLimit },
      69,
      /a limit was reached \(rate_limited\); try again at .*\d\d:\d\d:\d\d/,
    ],
    [
      'a chat that is off',
      { config: json({ ...CONFIG, enabled: false }) },
      69,
      /the chat of http\S+ is off; on its machine, dash doctor/,
    ],
    ['another server', { config: html() }, 69, /is not the chat of a dash server \(text\/html\)/],
    ['verification', { config: verifying }, 1, openPage],
    ['a foreign origin', { session: declined('forbidden_origin', 403) }, 1, /DASH_ALLOWED_ORIGINS/],
    ['an item where none are talked about', { config: json({ ...CONFIG, itemChat: false }) }, 1, /item/],
  ])('an exit code and one line of error report %s', async (what, replies, code, message) => {
    const { url } = await startScripted(replies)
    const item = what.startsWith('an item') ? ['--item', 'hn-1'] : []
    const finished = await chat(['--url', url, ...item, 'x'])
    expect([finished.code, finished.stderr]).toEqual([code, expect.stringMatching(message)])
    expect(finished.stderr.trimEnd().split('\n')).toHaveLength(1)
  })

  test('an unreachable server is reported with advice how to start one, under --json as a document', async () => {
    const port = new URL(await unreachableUrl()).port
    const finished = await chat(['x'], { env: { PORT: port } })
    expect(finished).toMatchObject({ code: 69, stdout: '' })
    expect(finished.stderr).toMatch(
      /cannot be reached .*; start one with dash serve, choose another with --url, or run/,
    )
    const named = await chat(['--url', `http://127.0.0.1:${port}`, 'x'])
    expect(named.code).toBe(69)
    expect(named.stderr).toMatch(/cannot be reached .*; check the address and the network, and try again\n$/)
    const { stdout } = await chat(['--json', 'x'], { env: { PORT: port } })
    expect(JSON.parse(stdout)).toMatchObject({ exitCode: 69 })
  })
})

test('the server of the settings receives the question without --url, by its base address first', async () => {
  const [local, base] = [await startScripted(), await startScripted()]
  const env = { PORT: new URL(local.url).port }
  expect(await chat(['x'], { env })).toEqual({ code: 0, stdout: 'Hello\n', stderr: '' })
  await chat(['x'], { env: { ...env, DASH_BASE_URL: base.url } })
  expect([local, base].map(({ requests }) => requests.length)).toEqual([3, 3])
})

test.each([
  ['m', 'the model at http://engine/v1 cannot', 'OPENAI_BASE_URL'],
  ['auto', 'the model at http://router cannot', 'OPENROUTER_BASE_URL'],
])('a model of the settings that cannot be reached is named: %s', async (model, words, setting) => {
  const failed = record('error', { error: 'upstream_error', code: 'connect' })
  const { url } = await startScripted({ chat: stream([META, failed]) })
  const addresses = { OPENAI_BASE_URL: 'http://engine/v1', OPENROUTER_BASE_URL: 'http://router' }
  const { stderr } = await chat(['x'], {
    env: { ...addresses, PORT: new URL(url).port, DASH_CHAT_MODEL: model },
  })
  expect(stderr).toContain(words)
  expect(stderr).toContain(`correct ${setting}, then`)
})
