import type { ServerResponse } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { openSiteverify } from '../../src/adapters/siteverify.ts'
import type { HumanVerifier } from '../../src/domain/ports.ts'
import { localSource } from '../support/local-source.ts'

const HOST = 'dash.example'

type ResponseWriter = (response: ServerResponse, body: string) => void

interface Service {
  verifier: HumanVerifier
  requests: { method: string | undefined; type: string | undefined; body: string }[]
  faults: unknown[]
}

async function startService(answers: ResponseWriter, responseTimeoutMs = 5_000): Promise<Service> {
  const requests: Service['requests'] = []
  const { url } = await localSource(({ method, headers, body }, response) => {
    requests.push({ method, type: headers['content-type'], body })
    answers(response, body)
  })
  const faults: unknown[] = []
  const verifier = openSiteverify({
    url: `${url}/siteverify`,
    secret: 'the secret &=',
    responseTimeoutMs,
    onFault: (error) => faults.push(error),
  })
  onTestFinished(() => verifier.close())
  return { verifier, requests, faults }
}

const sends =
  (body: string | Buffer, status = 200, type = 'application/json'): ResponseWriter =>
  (response) =>
    response.writeHead(status, { 'content-type': type }).end(body)

const json = (value: unknown, status?: number): ResponseWriter => sends(JSON.stringify(value), status)

const signal = new AbortController().signal

test('the visitor is verified if the service confirms this host, and the request is as the service documents', async () => {
  const result = { success: true, hostname: HOST, 'error-codes': null }
  const { verifier, requests, faults } = await startService(json(result))
  expect(await verifier.isHuman('a token+/=', HOST, signal)).toBe(true)
  expect(requests).toMatchObject([{ method: 'POST', type: 'application/x-www-form-urlencoded' }])
  const form = new URLSearchParams(requests[0]?.body)
  expect(Object.fromEntries(form)).toEqual({ secret: 'the secret &=', response: 'a token+/=' })
  expect(faults).toEqual([])
})

test('the visitor is not verified after a refusal, which is no fault', async () => {
  const refusal = { success: false, hostname: HOST, 'error-codes': ['timeout-or-duplicate'] }
  const { verifier, faults } = await startService(json(refusal))
  expect(await verifier.isHuman('token', HOST, signal)).toBe(false)
  expect(faults).toEqual([])
})

test.each<[string, ResponseWriter, number?]>([
  ['a rejected secret', json({ success: false, 'error-codes': ['invalid-input-secret'] })],
  ['another host', json({ success: true, hostname: 'evil.example' })],
  ['no host', json({ success: true })],
  ['a text for yes', json({ success: 'true', hostname: HOST })],
  ['a fault of its own', json({ success: true, hostname: HOST }, 500)],
  ['a redirect', (response) => response.writeHead(307, { location: '/siteverify' }).end()],
  ['a page', sends('<html>ok</html>', 200, 'text/html')],
  ['bytes that are no text', sends(Buffer.from([0x7b, 0xff, 0x7d]))],
  ['a reset', (response) => response.destroy()],
  ['a response that is never finished', (response) => response.write('{'), 50],
  [
    'an answer without end',
    (response) => {
      const more = (): void => {
        if (!response.destroyed) response.write(' '.repeat(32_768), more)
      }
      more()
    },
  ],
])('the visitor is not verified after %s, and the fault is reported', async (_, answers, timeoutMs) => {
  const { verifier, faults } = await startService(answers, timeoutMs)
  expect(await verifier.isHuman('token', HOST, signal)).toBe(false)
  expect(faults).toEqual([expect.any(Error)])
})

test('an invalid token is rejected without a request', async () => {
  const { verifier, requests } = await startService(json({ success: true, hostname: HOST }))
  expect(await verifier.isHuman('', HOST, signal)).toBe(false)
  expect(await verifier.isHuman('x'.repeat(2_049), HOST, signal)).toBe(false)
  expect(requests).toEqual([])
  expect(await verifier.isHuman('x'.repeat(2_048), HOST, signal)).toBe(true)
})

test('the verification ends when its caller aborts', async () => {
  const leaving = new AbortController()
  const { verifier } = await startService(() => leaving.abort(new Error('gone')))
  await expect(verifier.isHuman('token', HOST, leaving.signal)).rejects.toThrow('gone')
})
