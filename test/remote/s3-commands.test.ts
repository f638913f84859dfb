import { createHash } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { dash, serve, temporaryFolder } from '../support/dash.ts'
import { signedWorkspace } from '../support/exports.ts'
import { filesOfFolder } from '../support/temporary-folder.ts'
import { AS_OF } from '../support/workspace.ts'
import { startS3Server } from './s3-server.ts'
import type { S3Server } from './s3-server.ts'

let server: S3Server
let prefixes = 0

beforeAll(async () => {
  server = await startS3Server()
})

afterAll(() => server.close())

beforeEach(() => server.reset())

interface PublishReport {
  outcome: string
  sha256: string
  reason: string | null
}

/** Creates a data folder and an S3 store for the test. */
function storePlace(): { data: string; prefix: string; env: (endpoint?: string) => Record<string, string> } {
  const data = join(temporaryFolder(), 'data')
  mkdirSync(data)
  prefixes += 1
  const prefix = `of-commands-${prefixes}`
  const env = (endpoint = server.url): Record<string, string> => ({
    DASH_STORE_URL: `s3://${server.location().bucket}/${prefix}?endpoint=${endpoint}`,
    AWS_ACCESS_KEY_ID: 'S3RVER',
    AWS_SECRET_ACCESS_KEY: 'S3RVER',
  })
  return { data, prefix, env }
}

async function publish(data: string, env: Record<string, string>) {
  const finished = await dash(['publish-year', '--allow-empty', '--data-dir', data, '--json', '--once'], {
    env,
  })
  return { ...finished, report: JSON.parse(finished.stdout) as PublishReport }
}

test('a day is published to an S3 store once, and replayed from it byte for byte', async () => {
  const { data, env } = storePlace()
  const first = await publish(data, env())
  expect(first).toMatchObject({ code: 0, report: { outcome: 'published' } })
  const again = await publish(data, env())
  expect(again).toMatchObject({
    code: 0,
    report: { outcome: 'already-published', sha256: first.report.sha256 },
  })

  const { url, end } = await serve(['--data-dir', data], { env: env() })
  const response = await fetch(`${url}/api/feed/history?sort=year`)
  expect(response.status).toBe(200)
  const body = Buffer.from(await response.arrayBuffer())
  expect(createHash('sha256').update(body).digest('hex')).toBe(first.report.sha256)
  expect(await (await fetch(`${url}/readyz`)).json()).toMatchObject({ checks: { archive: 'ok' } })
  expect(await end('SIGTERM')).toBe(0)
})

test('an export into a bucket has the files of an export into a folder, and writes the checkpoint last', async () => {
  const workspace = await signedWorkspace([AS_OF])
  const folder = join(temporaryFolder(), 'site')
  const { prefix, env } = storePlace()
  const { DASH_STORE_URL: target = '', ...keys } = env()
  const exportTo = (to: string) =>
    dash(['export', to, '--page', '--json', '--data-dir', workspace.folder], { env: keys })
  expect((await exportTo(folder)).code).toBe(0)
  server.reset()
  const { code, stdout } = await exportTo(target)
  expect([code, JSON.parse(stdout)]).toMatchObject([0, { checkpoint: { size: 1 }, unchanged: 0 }])
  const written = server.requests.flatMap(({ method, target: path, body }) => {
    const name = path.split(`/${prefix}/`)[1] ?? ''
    return method === 'PUT' && !name.startsWith('probe/') ? [[name, body.toString('base64')] as const] : []
  })
  expect(Object.fromEntries(written)).toEqual(filesOfFolder(folder))
  expect(written.at(-1)?.[0]).toBe('tlog/year/checkpoint')
  server.reset()
  expect(JSON.parse((await exportTo(target)).stdout)).toMatchObject({ written: 0 })
  expect(server.requests.filter(({ method }) => method === 'PUT')).toEqual([])
})
