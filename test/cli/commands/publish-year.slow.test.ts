import { createHash } from 'node:crypto'
import { chmodSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { addDays } from '../../../src/domain/time.ts'
import { lastCompleteDay } from '../../../src/domain/year/ledger.ts'
import type { PublishReport } from '../../../src/jobs/publish-report.ts'
import { openWorkspace, publishDays, sampleSignals } from '../../support/workspace.ts'
import { dash, filledFolder, run, startDash, temporaryFolder } from '../../support/dash.ts'

async function publish(data: string, args: string[] = [], env: Record<string, string> = {}) {
  const finished = await run(['publish-year', '--data-dir', data, '--json', '--once', ...args], { env })
  return { ...finished, report: JSON.parse(finished.stdout) as PublishReport }
}

describe('publish-year', () => {
  test('a day is published once, and the next run says so', async () => {
    const data = await filledFolder()
    const first = await publish(data)
    expect(first).toMatchObject({
      code: 0,
      stderr: '',
      report: { outcome: 'published', attempt: 1, items: { hackerNews: 5 } },
    })
    expect(Object.keys(first.report).join(' ')).toBe(
      'job outcome asOfDay attempt publicationId sha256 byteSize publishedAt items distinctItems coverage gapsRecorded durationMs reason',
    )
    const sha256 = first.report.sha256 ?? ''
    const object = readFileSync(join(data, 'objects', 'sha256', sha256.slice(0, 2), sha256))
    expect(createHash('sha256').update(object).digest('hex')).toBe(sha256)
    expect(await publish(data)).toMatchObject({ code: 0, report: { outcome: 'already-published', sha256 } })
    const quiet = await dash(['publish-year', '--data-dir', data, '--quiet'])
    expect(quiet).toEqual({ code: 0, stdout: '', stderr: '' })
  })

  test('the summary names items and covered days, in a dry run too', async () => {
    const data = await filledFolder()
    const printed = `${lastCompleteDay(Date.now())}: 5 items, 1 of 365 days`
    const args = ['publish-year', '--data-dir', data]
    const rehearsed = `would publish ${printed}; nothing was written\n`
    expect(await run([...args, '--dry-run'])).toEqual({ code: 0, stdout: rehearsed, stderr: '' })
    expect(await run(args)).toEqual({ code: 0, stdout: `published ${printed}\n`, stderr: '' })
  })

  test('the gaps of a run are in its result, and too many of them are refused by number, clock, last entry and flag', async () => {
    const last = lastCompleteDay(Date.now())
    const workspaces = await Promise.all(
      [4, 9].map(async (days) => {
        const workspace = await openWorkspace()
        for (const day of [addDays(last, -days), last]) await workspace.feed.importSignals(sampleSignals(day))
        await publishDays(workspace, [addDays(last, -days)])
        workspace.close()
        return workspace.folder
      }),
    )
    const [few = '', many = ''] = workspaces
    const args = ['publish-year', '--once', '--data-dir']
    const rehearsed = await run([...args, few, '--dry-run'])
    expect(rehearsed.stdout).toMatch(/; 3 gaps would be recorded; nothing was written\n$/)
    expect(await run([...args, few])).toEqual({
      code: 0,
      stdout: `published ${last}: 9 items, 4 of 365 days; 3 gaps recorded\n`,
      stderr: '',
    })
    const refused = await publish(many)
    expect(refused).toMatchObject({ code: 1, report: { outcome: 'failed', gapsRecorded: 0 } })
    const today = `${addDays(last, 1)}T`
    expect(refused.stderr).toMatch(
      new RegExp(
        `^error: 8 missed days .* the clock says ${today}.* last entry of the ledger is of ${addDays(last, -8)}T.* --record-gaps 8`,
      ),
    )
    const confirmed = await publish(many, ['--record-gaps', '8'])
    expect(confirmed).toMatchObject({ code: 0, report: { outcome: 'published', gapsRecorded: 8 } })
  })

  test('a dry run leaves no file, whether it is refused or not', async () => {
    const [cwd, empty] = [temporaryFolder(), temporaryFolder()]
    for (const [code, ...flags] of [[1], [0, '--allow-empty']] as const) {
      expect(await run(['publish-year', '--dry-run', ...flags], { cwd })).toMatchObject({ code })
      expect(await run(['publish-year', '--dry-run', '--data-dir', empty, ...flags])).toMatchObject({ code })
    }
    expect([readdirSync(cwd), readdirSync(empty)]).toEqual([[], []])
  })

  test('an unavailable source ends an attempt with 69, and the third one and all later ones with 3', async () => {
    const data = await filledFolder({ titleProvenance: undefined })
    const down = { DASH_HN_URL: 'http://127.0.0.1:1/v0' }
    const codes: [number | null, string][] = []
    for (let attempt = 0; attempt < 4; attempt += 1) {
      const { code, report } = await publish(data, [], down)
      codes.push([code, report.outcome])
    }
    expect(codes).toEqual([
      [69, 'failed'],
      [69, 'failed'],
      [3, 'gap'],
      [3, 'gap'],
    ])
  })

  test('a publication whose head could not be written is reported, and ends with 74', async () => {
    const data = await filledFolder()
    const heads = join(data, 'objects', 'heads')
    mkdirSync(heads, { mode: 0o555, recursive: true })
    const { code, stdout, stderr } = await dash(['publish-year', '--json', '--data-dir', data], {
      boundByModes: true,
    })
    const reason: unknown = expect.stringContaining('its head could not be written')
    expect([code, JSON.parse(stdout)]).toMatchObject([74, { outcome: 'published', attempt: 1, reason }])
    expect(stderr).toContain('the next run writes it')
    chmodSync(heads, 0o755)
    expect(await publish(data)).toMatchObject({
      code: 0,
      report: { outcome: 'already-published', reason: null },
    })
    expect(readdirSync(heads)).toEqual(['1'])
  })

  test('a run stopped between two attempts ends with 143 and its report', async () => {
    const data = await filledFolder({ titleProvenance: undefined })
    const { output, until, end } = startDash(['publish-year', '--data-dir', data, '--json'], {
      env: { DASH_HN_URL: 'http://127.0.0.1:1/v0' },
    })
    await until('stderr', 'next attempt in 60 s')
    expect(await end('SIGTERM')).toBe(143)
    expect(JSON.parse(output.stdout)).toMatchObject({ outcome: 'failed', attempt: 1 })
  })
})
