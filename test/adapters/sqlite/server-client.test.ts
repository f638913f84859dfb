import type { ServerResponse } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { describeError } from '../../../src/cli/exit-codes.ts'
import { database, engineOf } from '../../../src/adapters/sqlite/database.ts'
import { openServerRequests, wasNeverSent } from '../../../src/adapters/sqlite/server-client.ts'
import { localSource, unreachableUrl } from '../../support/local-source.ts'
import { UNAVAILABLE } from '../../support/refusals.ts'

const NAME = 'the database server of the test'

/** Short enough for tests, and long enough for a response on this machine. */
const RESPONSE_TIMEOUT_MS = 2_000

function sendStatement(
  url: string,
  body = 'a statement',
  responseTimeoutMs = RESPONSE_TIMEOUT_MS,
): Promise<Response> {
  const requests = openServerRequests(NAME, responseTimeoutMs)
  onTestFinished(() => requests.close())
  return requests.fetch(
    new Request(`${url}/v2/pipeline`, { method: 'POST', headers: { authorization: 'Bearer x' }, body }),
  )
}

async function startServer(answer: (response: ServerResponse) => void): Promise<string> {
  return (await localSource((_question, response) => answer(response))).url
}

test('the request arrives as it was made, and its response as it was sent', async () => {
  const { url, requests } = await localSource((_question, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"a":"ü"}')
  })
  const response = await sendStatement(url, '{"sql":"é"}')
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json'])
  expect(await response.json()).toEqual({ a: 'ü' })
  expect(requests).toMatchObject([{ method: 'POST', target: '/v2/pipeline', body: '{"sql":"é"}' }])
  expect(requests[0]?.headers.authorization).toBe('Bearer x')
})

test.each([400, 404, 500, 503])('the status %i is left to the driver', async (status) => {
  const url = await startServer((response) => response.writeHead(status).end('no'))
  expect((await sendStatement(url)).status).toBe(status)
})

test.each([
  [405, '<html>', 'SERVER_ERROR: Server returned HTTP status 405'],
  [200, '{}', 'HRANA_PROTO_ERROR'],
  [200, '<!doctype html>', 'its response is not a JSON object'],
])('a server that responds %i with %j is named, with what to do', async (status, body, reason) => {
  const url = await startServer((response) => response.writeHead(status).end(body))
  const opened = database({
    location: { url, authToken: null },
    store: 'feed',
    nativeBusyMs: 1,
    retryMs: 1,
  })
  onTestFinished(() => opened.close())
  const failed: unknown = await opened.execute('SELECT 1').catch((error: unknown) => error)
  expect(describeError(failed)).toContain(`the database server ${url} failed (${reason}`)
  expect(describeError(failed)).toContain('; check it and its URL')
})

test.each([401, 403])('the token is refused if the server responds %i', async (status) => {
  const url = await startServer((response) => response.writeHead(status).end('no'))
  const response = sendStatement(url)
  await expect(response).rejects.toMatchObject(UNAVAILABLE)
  await expect(response).rejects.toThrow(`${NAME} responded with ${status}; correct DASH_DATABASE_AUTH_TOKEN`)
})

test.each([
  ['nobody listens', unreachableUrl, 'ECONNREFUSED'],
  ['the name of the server is not known', () => 'http://no-such-host.invalid', 'ENOTFOUND|EAI_AGAIN'],
])('the request is refused if %s, and known not to have been sent', async (_what, url, code) => {
  const error = await sendStatement(await url()).catch((reason: unknown) => reason)
  expect(error).toMatchObject(UNAVAILABLE)
  expect(String(error)).toMatch(
    new RegExp(`${NAME} cannot be reached \\((${code})\\); start it or correct the variable with this URL`),
  )
  expect(wasNeverSent(error)).toBe(true)
})

test.each<[string, (response: ServerResponse) => void]>([
  ['breaks the connection off', (response) => response.socket?.resetAndDestroy()],
  ['closes the connection', (response) => response.socket?.destroy()],
  [
    'breaks off inside its answer',
    (response) => {
      response.writeHead(200, { 'content-length': 100 })
      response.write('{')
      response.socket?.end()
    },
  ],
])('the request is refused if the server %s, and may have been executed', async (_what, misbehave) => {
  const error = await sendStatement(await startServer(misbehave)).catch((reason: unknown) => reason)
  expect(error).toMatchObject(UNAVAILABLE)
  expect(wasNeverSent(error)).toBe(false)
})

test.each<[string, (response: ServerResponse) => void]>([
  ['never answers', () => undefined],
  ['never ends its answer', (response) => response.writeHead(200).write('{')],
])('the request fails, and is not a refusal, if the server %s', async (_what, misbehave) => {
  const error = await sendStatement(await startServer(misbehave), '', 200).catch((reason: unknown) => reason)
  expect(error).not.toMatchObject({ name: 'Refusal' })
  expect(String(error)).toContain(`${NAME} did not respond within 200 ms`)
  expect(wasNeverSent(error)).toBe(false)
})

test.each([
  ['http://127.0.0.1:8080', 'the database server http://127.0.0.1:8080'],
  ['libsql://name.example.org/', 'the database server libsql://name.example.org'],
  [
    'https://user:secret@example.org/db?authToken=secret#secret',
    'the database server https://example.org/db',
  ],
])('the server at %s is named without secrets', (url, name) => {
  expect(engineOf({ url, authToken: null }, { nativeBusyMs: 1, retryMs: 1 }).name).toBe(name)
})
