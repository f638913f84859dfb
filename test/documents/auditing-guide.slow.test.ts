import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { addDays } from '../../src/domain/time.ts'
import { formatHead } from '../../src/domain/year/ledger.ts'
import { headAt } from '../domain/year/ledger-rows.ts'
import { serve, temporaryFolder } from '../support/dash.ts'
import { localSource } from '../support/local-source.ts'
import { openSampleApp, sampleArchive } from '../support/sample-archive.ts'
import { shell as plainShell, shellBlocks } from '../support/shell.ts'
import type { Said } from '../support/shell.ts'
import { AS_OF, openWorkspace, publishDays, sampleSignals } from '../support/workspace.ts'

const DAYS = [0, 1, 2].map((index) => addDays(AS_OF, index))

/** The shell blocks of the guide: the first keeps a head, the others are run later. */
const [keepHead = '', ...later] = shellBlocks('docs/auditing.md')

/** A stranger's shell, at one host. */
function shell(
  script: string,
  folder: string,
  base: string,
  env: Record<string, string> = {},
): Promise<Said> {
  return plainShell(script, folder, { BASE: base, ...env })
}

/** A host of the built program with an archive of the given days; its points make its history its own. */
async function hostOf(days: readonly string[], points = 10): Promise<string> {
  const workspace = await openWorkspace()
  const signals = days.flatMap((day) => sampleSignals(day))
  await workspace.feed.importSignals(
    signals.map((signal) => ({ ...signal, points: (signal.points ?? 0) + points })),
  )
  await publishDays(workspace, days)
  return (await serve(['--data-dir', workspace.folder])).url
}

test('the guide proves a sound host, and finds out one that rewrote its archive after a head was kept', async () => {
  expect(later.length).toBeGreaterThan(3)
  const host = await hostOf(DAYS)
  const folder = temporaryFolder()
  expect(await shell(keepHead, folder, host)).toMatchObject({ code: 0 })
  const sound = await shell(later.join('\n'), folder, host)
  expect(sound.lines.at(-1)).toBe('OK: 3 entries hold, 3 publications are what they say')
  expect(sound.code).toBe(0)
  const newest = await shell(later.join('\n'), folder, host, { NEWEST: '1' })
  expect(newest).toMatchObject({
    code: 0,
    lines: expect.arrayContaining([expect.stringMatching(/^OK: .* 1 publ/)]),
  })

  const rewritten = await shell(later.join('\n'), folder, await hostOf(DAYS, 20))
  expect(rewritten.lines).toEqual([
    'the chain of 3 entries holds',
    expect.stringMatching(/^FAILED: the entry you kept is gone or was changed: 3 [0-9a-f]{64}$/),
  ])
  expect(rewritten.code).toBe(1)
  const rolledBack = await shell(later.join('\n'), folder, await hostOf(DAYS.slice(0, 2)))
  expect([rolledBack.code, rolledBack.lines.at(-1)]).toEqual([
    1,
    expect.stringMatching(/^FAILED: the entry you kept/),
  ])
})

describe('the guide, at an archive with legacy publications, a gap and two of one time,', () => {
  const archive = sampleArchive()
  const { rows } = archive.contents
  const last = rows.at(-1)
  const newestAt = new Date(last?.publishedAt ?? 0).toISOString()

  /** What the guide says to a host that changes some of its honest answers; the kept head is that of the seal. */
  async function verdict(change: (body: string, target: string) => string): Promise<Said> {
    const app = openSampleApp(archive)
    const host = await localSource((question, response) => {
      void Promise.resolve(app.request(`http://dash.test${question.target}`)).then(async (answer) => {
        response.statusCode = answer.status
        response.end(change(await answer.text(), question.target))
      })
    })
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'kept-head.json'), formatHead(headAt(rows, 2)))
    return shell(later.join('\n'), folder, host.url)
  }

  test('proves a sound host', async () => {
    const { code, lines } = await verdict((body) => body)
    expect([code, lines.at(-1)]).toEqual([0, 'OK: 6 entries hold, 5 publications are what they say'])
  })

  const lies: Record<string, [(body: string, target: string) => string, RegExp]> = {
    'an edited entry': [
      (body, target) => (target.endsWith('/ledger') ? body.replace('"missed"', '"attempts_spent"') : body),
      /entry 4 does not continue/,
    ],
    'an edited last entry': [
      (body, target) => (target.endsWith('/ledger') ? body.replace(`${last?.sha256}`, '0'.repeat(64)) : body),
      /the head the host shows is not in its ledger/,
    ],
    'a ledger without its last entries': [
      (body, target) => (target.endsWith('/ledger') ? body.split('\n').slice(0, 4).join('\n') : body),
      /the head the host shows is not in its ledger/,
    ],
    'a head that is two entries behind': [
      (body, target) => (target.endsWith('/head') ? formatHead(headAt(rows, 4)) : body),
      /the newest head of the host is older/,
    ],
    'an edited legacy ledger': [
      (body, target) => (target.endsWith('/legacy') ? body.replace('2026-01-01', '2026-01-02') : body),
      /the legacy ledger does not match its seal/,
    ],
    'another body': [(body, target) => (target.endsWith(newestAt) ? `${body} ` : body), /another body at/],
    'another selection': [
      (body, target) => (target.endsWith('.999Z') && body.includes('2026-01-06') ? `${body} ` : body),
      /another selection before/,
    ],
  }
  test.each(Object.entries(lies))('finds out %s', async (_what, [change, verdictLine]) => {
    const { code, lines } = await verdict(change)
    expect([code, lines.at(-1)]).toEqual([1, expect.stringMatching(verdictLine)])
    expect(lines.at(-1)).toMatch(/^FAILED: /)
  })
})
