import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from '@libsql/client'
import { describe, expect, test } from 'vitest'
import { lastCompleteDay } from '../../src/domain/year/ledger.ts'
import type { PublishReport } from '../../src/jobs/publish-report.ts'
import type { VerifyReport } from '../../src/jobs/archive/audit.ts'
import { storiesOf } from '../support/signals.ts'
import { run } from '../support/dash.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { localSource } from '../support/local-source.ts'

interface Scene {
  folder: string
  bucket: MemoryBucket
  publish: () => Promise<{ code: number; stderr: string; report: PublishReport }>
}

/** Signals of the last complete day, and a bucket for the archive. */
async function filledScene(): Promise<Scene> {
  const folder = join(await temporaryFolder(), 'data')
  mkdirSync(folder)
  const bucket = await memoryBucket()
  const stdin = storiesOf(lastCompleteDay(Date.now()), 5)
  const imported = await run(['import', 'signals', '-', '--data-dir', folder], { stdin })
  expect(imported.code).toBe(0)
  const publish: Scene['publish'] = async () => {
    const args = ['publish-year', '--once', '--json', '--data-dir', folder]
    const { code, stdout, stderr } = await run(args, { env: bucket.env })
    return { code, stderr, report: JSON.parse(stdout) as PublishReport }
  }
  return { folder, bucket, publish }
}

async function inLedger(folder: string, ...statements: string[]): Promise<unknown[]> {
  const client = createClient({ url: `file:${join(folder, 'ledger.db')}` })
  let rows: unknown[] = []
  for (const statement of statements) ({ rows } = await client.execute(statement))
  client.close()
  return rows
}

describe('publish-year', () => {
  test('a publication whose head could not be written is reported, and ends with 74', async () => {
    const { bucket, publish } = await filledScene()
    bucket.refuse('PUT', /heads/)
    const { code, stderr, report } = await publish()
    expect([code, report]).toMatchObject([
      74,
      { outcome: 'published', attempt: 1, reason: expect.stringContaining('its head could not be written') },
    ])
    expect(stderr).toContain('the next run writes it')
    bucket.refuse(null)
    expect(await publish()).toMatchObject({ code: 0, report: { outcome: 'already-published', reason: null } })
    expect(bucket.keys()).toContain('heads/1')
  })
})

describe('verify-archive', () => {
  test('damage beside an unreadable store ends with 65, and the unreadable store alone with 74', async () => {
    const { folder, bucket, publish } = await filledScene()
    expect((await publish()).code).toBe(0)
    bucket.refuse('GET', /list-type.*sha256/)
    const audit = async (): Promise<[code: number, report: VerifyReport]> => {
      const args = ['verify-archive', '--json', '--data-dir', folder]
      const { code, stdout } = await run(args, { env: bucket.env })
      return [code, JSON.parse(stdout) as VerifyReport]
    }
    expect(await audit()).toMatchObject([74, { ok: false, complete: false, findings: [] }])
    await inLedger(folder, 'DROP TRIGGER entries_no_update', 'UPDATE entries SET byte_size = byte_size + 1')
    const [code, { complete, findings }] = await audit()
    expect([code, complete]).toEqual([65, false])
    expect(findings).toContainEqual(expect.objectContaining({ code: 'row_tampered', path: 'entries/1' }))
  })
})

/** An S3 bucket in memory that can simulate faults. */
interface MemoryBucket {
  /** Variables that select it as the object store. */
  env: Record<string, string>
  keys: () => string[]
  /** Refuses requests of a method whose path and query match; null: refuses none. */
  refuse(method: 'GET' | 'PUT' | null, target?: RegExp): void
}

async function memoryBucket(): Promise<MemoryBucket> {
  const objects = new Map<string, string>()
  let refused: { method: string | null; target: RegExp } = { method: null, target: /./ }
  const { url } = await localSource(({ method, target, headers, body }, response) => {
    const { pathname, searchParams } = new URL(target, 'http://bucket')
    const key = decodeURIComponent(pathname.replace('/bucket/', ''))
    if (method === refused.method && refused.target.test(target)) {
      response.writeHead(403).end('<Error><Code>AccessDenied</Code></Error>')
    } else if (searchParams.has('list-type')) {
      response.end(
        listing([...objects.keys()].filter((one) => one.startsWith(searchParams.get('prefix') ?? ''))),
      )
    } else if (method === 'PUT') {
      const isKept = headers['if-none-match'] === '*' && objects.has(key)
      if (!isKept) objects.set(key, body)
      response.writeHead(isKept ? 412 : 200)
      response.end(isKept ? '<Error><Code>PreconditionFailed</Code></Error>' : '')
    } else {
      const object = objects.get(key)
      response.writeHead(object === undefined ? 404 : 200)
      response.end(object ?? '<Error><Code>NoSuchKey</Code></Error>')
    }
  })
  const bucket: MemoryBucket = {
    env: {
      DASH_STORE_URL: `s3://bucket?endpoint=${url}&region=r`,
      AWS_ACCESS_KEY_ID: 'id',
      AWS_SECRET_ACCESS_KEY: 'secret',
    },
    keys: () => [...objects.keys()],
    refuse: (method, target = /./) => void (refused = { method, target }),
  }
  return bucket
}

function listing(keys: readonly string[]): string {
  const contents = keys.map((key) => `<Contents><Key>${encodeURIComponent(key)}</Key></Contents>`).join('')
  const end = '<IsTruncated>false</IsTruncated><EncodingType>url</EncodingType>'
  return `<ListBucketResult>${contents}${end}</ListBucketResult>`
}
