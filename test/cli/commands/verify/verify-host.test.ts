import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { sha256Hex } from '../../../../src/domain/digest.ts'
import { formatHead } from '../../../../src/domain/year/ledger.ts'
import { formatPolicy } from '../../../../src/domain/year/log/log-policy.ts'
import { signerKey } from '../../../../src/domain/year/log/signed-note.ts'
import type { VerifyReport } from '../../../../src/jobs/verify-archive.ts'
import { headAt } from '../../../domain/year/ledger-rows.ts'
import { listenLocally } from '../../../support/api-client.ts'
import { run, temporaryFolder } from '../../../support/dash.ts'
import { openSampleApp, rewritten, sampleArchive } from '../../../support/sample-archive.ts'
import type { SampleArchive } from '../../../support/sample-archive.ts'
import { LOG_NAME } from '../../../support/signed-log.ts'
import { HOST_KEY, HOST_POLICY, logFilesOf, noteOf, serveFiles, staticFiles } from '../../../support/static-host.ts'

interface Audit {
  code: number
  stderr: string
  report: VerifyReport
  /** `code path` of each finding. */
  found: string[]
}

/** Audits a host with the state folder of `home`. */
async function audit(url: string, home: string, ...flags: string[]): Promise<Audit> {
  const args = ['verify-archive', '--url', url, '--json', '--jobs', '2', ...flags]
  const { code, stdout, stderr } = await run(args, { cwd: home, env: { XDG_STATE_HOME: join(home, 'state') } })
  const report = JSON.parse(stdout) as VerifyReport
  return { code, stderr, report, found: report.findings.map(({ code: name, path }) => `${name} ${path}`) }
}

/** A server over an archive whose newest checkpoint covers the first `size` entries; returns its URL. */
async function server(archive: SampleArchive, size?: number): Promise<string> {
  const { url } = await listenLocally(openSampleApp(archive, {}, logFilesOf(archive, size)))
  return url
}

/** Folder of the log in the state folder of `home`. */
const stateOf = (home: string): string => join(home, 'state', 'dash', 'logs', sha256Hex(LOG_NAME))

const FIRST_USE = `the key of the log ${LOG_NAME} is trusted on first use, as URL names it; to verify it, give a policy from another source with --policy\n`

const archive = sampleArchive(4)
const { rows } = archive.contents
const { size } = { size: rows.length }
/** The same log, except for the reason of its gap. */
const forked = rewritten(archive, 3, { reason: 'attempts_spent', attempts: 3 })

describe('a sound host', () => {
  test('a server with a signed log is sound, and its checkpoint is kept for the next audit', async () => {
    const home = temporaryFolder()
    const url = await server(archive)
    const first = await audit(url, home)
    expect([first.code, first.found, first.stderr]).toEqual([0, [], FIRST_USE.replace('URL', url)])
    expect(first.report.log).toMatchObject({ origin: LOG_NAME, size, trust: 'first use', behind: 0, fork: null })
    expect(readFileSync(join(stateOf(home), '1', 'latest'), 'utf8')).toBe(noteOf(archive))
    const second = await audit(url, home)
    expect([second.code, second.stderr, second.report.log]).toMatchObject([0, '', { trust: 'kept' }])
    expect(readdirSync(stateOf(home))).toEqual(['1'])
  })

  test('a static host below a prefix is sound without an API, and every publication is fetched', async () => {
    const host = await serveFiles(staticFiles(archive))
    const { code, found, report } = await audit(host.url, temporaryFolder())
    expect([code, found]).toEqual([0, []])
    expect(report).toMatchObject({ publications: 7, objects: 7, gaps: 1, head: { seq: size, leaf: rows.at(-1)?.leaf } })
  })

  test('a static host is sound under --sample and --since, which select the fetched publications', async () => {
    const host = await serveFiles(staticFiles(archive))
    const { code, report } = await audit(host.url, temporaryFolder(), '--since', '2026-01-06')
    expect([code, report]).toMatchObject([0, { publications: 7, objects: 3 }])
  })

  test('a host of the policy of --policy is sound without a note', async () => {
    const home = temporaryFolder()
    writeFileSync(join(home, 'trusted'), HOST_POLICY)
    const { code, stderr, report } = await audit(await server(archive), home, '--policy', 'trusted')
    expect([code, stderr, report.log]).toMatchObject([0, '', { trust: 'policy' }])
  })

  test('a host with a head kept before its log was signed is sound', async () => {
    const home = temporaryFolder()
    const host = await serveFiles(staticFiles(archive))
    writeFileSync(join(home, 'kept.json'), formatHead(headAt(rows, 3)))
    for (const url of [host.url, await server(archive)])
      expect((await audit(url, home, '--expect-head', 'kept.json')).code).toBe(0)
    writeFileSync(join(home, 'kept.json'), formatHead(headAt(forked.contents.rows, 3)))
    for (const url of [host.url, await server(archive)])
      expect((await audit(url, home, '--expect-head', 'kept.json')).found).toEqual(['head_mismatch kept.json'])
  })

  test('a server may have entries after its checkpoint', async () => {
    expect((await audit(await server(archive, size - 2), temporaryFolder())).found).toEqual([])
  })

  test('a static host may list entries after its checkpoint in its index, and a note says so', async () => {
    const files = staticFiles(archive, size - 1)
    files.set('index.json', staticFiles(archive).get('index.json') ?? new Uint8Array())
    const { code, stderr } = await audit((await serveFiles(files)).url, temporaryFolder())
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining('index.json lists 1 entries that are not in the checkpoint of '),
    ])
  })
})
