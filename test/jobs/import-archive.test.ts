import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { addDays } from '../../src/domain/time.ts'
import { proveBytes } from '../../src/domain/year/envelope.ts'
import { importArchive } from '../../src/jobs/import-archive.ts'
import {
  copyOfSample,
  importPortsOf,
  oldPublication,
  recentArchive,
  SAMPLE_ARCHIVE,
  writeArchive,
  writeList,
} from '../support/legacy-archive.ts'
import {
  AS_OF,
  openWorkspace,
  publish,
  publishDays,
  publishPortsOf,
  RUN_AT,
  sampleSignals,
  tickingClock,
} from '../support/workspace.ts'
import type { Workspace } from '../support/workspace.ts'

function importFrom(...given: Parameters<typeof importPortsOf>): ReturnType<typeof importArchive> {
  return importArchive(importPortsOf(...given))
}

/** Expects no trace of an import: no row, no mark, no object, no head. */
async function expectUntouched(workspace: Workspace): Promise<void> {
  expect(await workspace.ledger.read()).toEqual({ rows: [], legacy: [], founding: null })
  expect(readdirSync(workspace.objectsPath)).toEqual([])
}

describe('an older archive', () => {
  test('an older archive is imported completely: both ledgers in order of time, sealed, with its original bytes', async () => {
    const workspace = await openWorkspace()
    const report = await importFrom(workspace, SAMPLE_ARCHIVE)
    expect(report).toEqual({ imported: 6, unchanged: 0, refused: [], refusedCount: 0 })
    const { proved, head } = await workspace.year.read()
    expect(proved.timeline.map(({ ledger, manifest }) => `${ledger} ${manifest.publicationId}`)).toEqual([
      'v1 top-year-2024-01-01',
      'v1 top-year-2024-01-02',
      'v1 top-year-2024-01-03',
      'versioned top-year-v2-2024-01-03',
      'versioned top-year-v2-2024-01-04',
      'versioned top-year-v2-2024-01-06',
    ])
    const kinds = ['publication', 'publication', 'publication', 'legacy-seal']
    expect(proved.entries.map(({ kind }) => kind)).toEqual(kinds)
    expect(proved.entries.map((entry) => entry.recordedAt).slice(0, 3)).toEqual(
      proved.timeline.slice(3).map(({ manifest }) => manifest.publishedAt),
    )
    expect(head?.leaf).toBe(proved.lastLeaf)
    for (const { manifest } of proved.timeline)
      proveBytes(manifest, await workspace.objects.get(manifest.sha256))
  })

  test('repeating an import changes nothing, also with its list in another order and after own entries', async () => {
    const workspace = await openWorkspace()
    const folder = recentArchive()
    await importFrom(workspace, folder)
    await workspace.feed.importSignals(sampleSignals())
    const unchanged = { imported: 0, unchanged: 2, refused: [], refusedCount: 0 }
    const before = await workspace.ledger.read()
    expect(await importFrom(workspace, folder)).toEqual(unchanged)
    expect(await workspace.ledger.read()).toEqual(before)
    await publishDays(workspace, [AS_OF])
    const lines = readFileSync(join(folder, 'manifests.ndjson'), 'utf8').split('\n')
    writeList(folder, lines.toReversed().join('\r\n'))
    const clock = tickingClock(RUN_AT + 1_000_000)
    expect(await importFrom(workspace, folder, { clock })).toEqual(unchanged)
    const after = await workspace.ledger.read()
    expect(after.rows.slice(0, 2)).toEqual(before.rows)
    expect(after.rows.at(-1)?.publicationId).toBe(`top-year-v3-${AS_OF}`)
  })

  test('an archive of versioned publications alone is closed by a seal over nothing, also after failed attempts', async () => {
    const workspace = await openWorkspace()
    await workspace.feed.importSignals(sampleSignals())
    const full = { ...workspace.objects, put: () => Promise.reject(new Error('no room')) }
    expect(await publish(publishPortsOf(workspace, { objects: full }))).toMatchObject({
      report: { attempt: 1 },
    })
    const folder = writeArchive([oldPublication('versioned', '2024-01-01')])
    expect(await importFrom(workspace, folder)).toMatchObject({ imported: 1 })
    const { proved } = await workspace.year.read()
    expect(proved.entries).toMatchObject([{ kind: 'publication' }, { kind: 'legacy-seal', rows: 0 }])
  })
})

describe('the refusal of an import', () => {
  test('an import with wrong lines is refused, all of them reported by number, and so is an empty list', async () => {
    const workspace = await openWorkspace()
    const good = oldPublication('v1', '2024-01-01')
    const folder = writeArchive([
      good,
      oldPublication('v1', '2024-01-02', { sha256: '0'.repeat(64) }),
      oldPublication('versioned', '2024-01-03', { kind: 7 }),
      good,
    ])
    const noLines = Buffer.from('\n\n{"publicationId":"x"\n\xff\n[]\n', 'latin1')
    writeList(folder, Buffer.concat([readFileSync(join(folder, 'manifests.ndjson')), noLines]))
    const { refused } = await importFrom(workspace, folder)
    const id = 'top-year-v1 of 2024-01-02'
    expect(refused).toEqual([
      { line: 2, publicationId: id, reason: expect.stringContaining('digest') as unknown },
      { line: 3, publicationId: 'top-year-v2 of 2024-01-03', reason: 'kind: must be a string' },
      { line: 4, publicationId: 'top-year-v1 of 2024-01-01', reason: 'publicationId: same as line 1' },
      { line: 6, publicationId: null, reason: expect.stringContaining('not JSON') as unknown },
      { line: 7, publicationId: null, reason: 'not valid UTF-8' },
      { line: 8, publicationId: null, reason: 'not a JSON object' },
    ])
    await expectUntouched(workspace)
    const empty = [{ publicationId: null, line: null, reason: 'manifests.ndjson lists no publication' }]
    const report = { imported: 0, unchanged: 0, refused: empty, refusedCount: 1 }
    expect(await importFrom(workspace, writeArchive([]))).toEqual(report)
    await expectUntouched(workspace)
  })

  test('an import into a ledger with an entry of its own is refused', async () => {
    const workspace = await openWorkspace()
    await workspace.feed.importSignals(sampleSignals())
    await publishDays(workspace, [AS_OF])
    const before = await workspace.ledger.read()
    const objects = readdirSync(join(workspace.objectsPath, 'sha256'))
    const report = await importFrom(workspace, SAMPLE_ARCHIVE)
    expect(report.refused).toEqual([
      { publicationId: null, line: null, reason: expect.stringContaining('already has entries') },
    ])
    expect(await workspace.ledger.read()).toEqual(before)
    expect(readdirSync(join(workspace.objectsPath, 'sha256'))).toEqual(objects)
  })
})

describe('a started import', () => {
  test('a started import refuses another archive with as many publications of each ledger, and stores nothing of it', async () => {
    const workspace = await openWorkspace()
    const ledger: typeof workspace.ledger = {
      ...workspace.ledger,
      commitFounding: () => Promise.resolve('lease-lost'),
    }
    const losing = importFrom(workspace, recentArchive(), { ledger })
    await expect(losing).rejects.toMatchObject({ code: 'lease_lost' })
    // No head names the seal that was not written.
    expect(await workspace.objects.keys('heads')).toEqual(['heads/1'])
    const begun = await workspace.ledger.read()
    const objects = await workspace.objects.keys('sha256')
    const other = writeArchive([
      oldPublication('v1', addDays(AS_OF, -5)),
      oldPublication('versioned', addDays(AS_OF, -4)),
    ])
    const { refused } = await importFrom(workspace, other)
    expect(refused).toEqual([
      { publicationId: null, line: null, reason: expect.stringContaining('another archive is not finished') },
    ])
    expect(begun.founding).toMatchObject({ seq: 1 })
    expect(await workspace.ledger.read()).toEqual(begun)
    expect(await workspace.objects.keys('sha256')).toEqual(objects)
    expect(await importFrom(workspace, recentArchive())).toMatchObject({ imported: 2 })
  })
})

describe('a failed import', () => {
  test('an import fails when a file changes between its verification and its storing', async () => {
    const workspace = await openWorkspace()
    const folder = copyOfSample()
    await expect(
      importFrom(workspace, folder, {
        onPublication: (step, count, of) => {
          if (step === 'verified' && count === of)
            writeFileSync(join(folder, 'objects/v2-indented'), 'changed')
        },
      }),
    ).rejects.toMatchObject({
      code: 'input_unreadable',
      detail: expect.stringContaining('changed while it was imported'),
    })
    expect(await workspace.ledger.read()).toEqual({ rows: [], legacy: [], founding: null })
  })
})
