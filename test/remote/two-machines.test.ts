import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sha256Hex } from '../../src/domain/digest.ts'
import { lastCompleteDay } from '../../src/domain/year/ledger.ts'
import type { PublishReport } from '../../src/jobs/publish-report.ts'
import { confirmationOf, dash, serve, temporaryFolder } from '../support/dash.ts'
import { SAMPLE_ARCHIVE } from '../support/legacy-archive.ts'
import { storiesOf } from '../support/signals.ts'
import { startS3Server } from '../support/s3-server.ts'
import type { S3Server } from '../support/s3-server.ts'
import { startSqld } from '../support/sqld.ts'
import type { Sqld } from '../support/sqld.ts'

/** The built program on two machines that share a libSQL server and an S3 store, and nothing else. */
let sqld: Sqld
let s3: S3Server

beforeAll(async () => {
  ;[sqld, s3] = await Promise.all([startSqld(), startS3Server()])
})
afterAll(() => Promise.all([sqld.stop(), s3.close()]))

const HISTORY = '/api/feed/history?sort=year'

async function readHistory(url: string): Promise<{ status: number; etag: string | null; digest: string }> {
  const response = await fetch(url + HISTORY)
  const bytes = Buffer.from(await response.arrayBuffer())
  return { status: response.status, etag: response.headers.get('etag'), digest: sha256Hex(bytes) }
}

test(
  'one machine publishes while the other serves, and one of two servers may stop',
  { timeout: 180_000 },
  async () => {
    const env = {
      DASH_DATABASE_URL: sqld.url,
      DASH_STORE_URL: `s3://${s3.location().bucket}/two-machines?endpoint=${s3.url}`,
      AWS_ACCESS_KEY_ID: 'S3RVER',
      AWS_SECRET_ACCESS_KEY: 'S3RVER',
    }
    const machines = [temporaryFolder(), temporaryFolder()]
    const run = (machine: number, args: string[], stdin = '') =>
      dash(args, { env, cwd: machines[machine] ?? '', stdin })

    expect(await run(0, ['import', 'archive', SAMPLE_ARCHIVE])).toMatchObject({ code: 0 })
    expect(await run(1, ['import', 'archive', SAMPLE_ARCHIVE, '--json'])).toMatchObject({
      code: 0,
      stdout: '{"imported":0,"unchanged":6,"refused":[],"refusedCount":0}\n',
    })
    const stories = storiesOf(lastCompleteDay(Date.now()), 5)
    expect(await run(0, ['import', 'signals', '-'], stories)).toMatchObject({ code: 0 })

    const [one, two] = await Promise.all(machines.map((cwd) => serve([], { env, cwd })))
    if (!one || !two) throw new Error('two servers were started')
    const before = await readHistory(one.url)
    expect(before).toMatchObject({ status: 200, etag: `"${before.digest}"` })
    expect(await readHistory(two.url)).toEqual(before)

    const gaps = confirmationOf(await run(0, ['publish-year', '--dry-run']))
    const publishing = Promise.all([0, 1].map((each) => run(each, ['publish-year', '--json', ...gaps])))
    await one.end('SIGKILL')
    const reports = (await publishing).map(({ code, stdout }) => ({
      code,
      ...(JSON.parse(stdout) as Partial<PublishReport>),
    }))
    const published = reports.filter(({ outcome }) => outcome === 'published')
    expect(published).toHaveLength(1)
    const other = reports.find(({ outcome }) => outcome !== 'published')
    expect(other?.code === 75 || other?.outcome === 'already-published').toBe(true)

    const after = await readHistory(two.url)
    expect(after).toEqual({
      status: 200,
      etag: `"${published[0]?.sha256}"`,
      digest: published[0]?.sha256,
    })
    const again = await serve([], { env, cwd: machines[0] ?? '' })
    expect(await readHistory(again.url)).toEqual(after)

    const audit = await run(1, ['verify-archive', '--payloads', '--json'])
    expect(audit).toMatchObject({ code: 0, stderr: '' })
    expect(JSON.parse(audit.stdout)).toMatchObject({
      ok: true,
      complete: true,
      publications: 7,
      objects: 7,
      findings: [],
    })
    const strangers = await dash(['verify-archive', '--url', two.url, '--json'], { cwd: temporaryFolder() })
    expect(strangers).toMatchObject({ code: 0 })

    const copy = join(temporaryFolder(), 'copy')
    expect(await run(0, ['copy-archive', '--to', copy])).toMatchObject({ code: 0 })
    const held = await dash(['verify-archive', '--data-dir', copy, '--url', two.url, '--json'])
    expect(held).toMatchObject({ code: 0 })
    expect(JSON.parse(held.stdout)).toMatchObject({ ok: true, publications: 7 })
  },
)
