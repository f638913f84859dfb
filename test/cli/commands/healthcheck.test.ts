import { expect, test } from 'vitest'
import { run } from '../../support/dash.ts'
import { localSource } from '../../support/local-source.ts'

/** Starts a server with the same response to every request. */
async function respondWith(status: number, body: string): Promise<string> {
  const { url } = await localSource((_request, response) => response.writeHead(status).end(body))
  return url
}

test('a ready server ends the check with 0, by its address and by the settings', async () => {
  const base = await respondWith(200, '{"status":"ready"}')
  expect(await run(['healthcheck', '--url', base])).toMatchObject({
    code: 0,
    stdout: `${base}/readyz is ready\n`,
  })
  const env = { HOST: '0.0.0.0', PORT: new URL(base).port }
  const own = await run(['healthcheck', '--json'], { env })
  expect([own.code, JSON.parse(own.stdout)]).toMatchObject([0, { ready: true, status: 'ready' }])
})

test('a missing server ends the check with 69', async () => {
  const { code, stdout, stderr } = await run(['healthcheck', '--url', 'http://127.0.0.1:1'])
  expect({ code, stdout }).toEqual({ code: 69, stdout: '' })
  expect(stderr).toContain('http://127.0.0.1:1/readyz does not respond (ECONNREFUSED)')
})

test.each([
  [503, '{"status":"draining","checks":{}}', 'reports that it is draining'],
  [503, '{"status":"unavailable","checks":{}}', 'reports that it is unavailable'],
  [200, '<!doctype html>', 'responds with 200 and is not a dash server'],
  [200, '{"status":"fine"}', 'responds with 200 and is not a dash server'],
])('a response %i with %s ends the check with 69', async (status, body, message) => {
  const { code, stderr } = await run(['healthcheck', '--url', await respondWith(status, body)])
  expect(code).toBe(69)
  expect(stderr).toContain(message)
})

test('the password of an address is not shown', async () => {
  const url = (await respondWith(200, '{"status":"ready"}')).replace('//', '//someone:hidden@')
  for (const args of [
    ['--url', url],
    ['--json', '--url', url],
    ['--url', `${url}?`],
  ]) {
    const { stdout, stderr } = await run(['healthcheck', ...args])
    expect(stdout + stderr).toContain('(not shown)@127.0.0.1')
    expect(stdout + stderr).not.toContain('hidden')
  }
})

test('the check needs an address if the port is not known', async () => {
  expect((await run(['healthcheck'], { env: { PORT: '0' } })).code).toBe(64)
})
