import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { addDays } from '../../../../src/domain/time.ts'
import { signerKey } from '../../../../src/domain/year/log/signed-note.ts'
import { staticObjectPath } from '../../../../src/domain/year/log/static-layout.ts'
import type { CopyReport } from '../../../../src/jobs/archive/copy-archive.ts'
import { importArchive } from '../../../../src/jobs/import-archive.ts'
import { signLedger } from '../../../../src/jobs/sign-checkpoint.ts'
import { testWitness } from '../../../domain/year/log-vectors.ts'
import { run, temporaryFolder } from '../../../support/dash.ts'
import { exportFolder, exportTo, publishSigned, signedWorkspace } from '../../../support/exports.ts'
import { importPortsOf, SAMPLE_ARCHIVE } from '../../../support/legacy-archive.ts'
import { rewritten, sampleArchive } from '../../../support/sample-archive.ts'
import { auditLog, LOG_NAME, logSettings, signedLogIn } from '../../../support/signed-log.ts'
import { HOST_POLICY, noteOf, staticFiles, writeFiles } from '../../../support/static-host.ts'
import { filesOfFolder } from '../../../support/temporary-folder.ts'
import { AS_OF, openWorkspace, publish, publishPortsOf, reopenWorkspace } from '../../../support/workspace.ts'

const archive = sampleArchive(4)
const size = archive.contents.rows.length
const files = staticFiles(archive)
const CHECKPOINT = 'tlog/year/checkpoint'

type Files = ReadonlyMap<string, Uint8Array | string>

/** Writes the files of a mirror and the policy of the sample's log into a new folder. */
function mirrorOf(changes: Files = new Map(), original = files): string {
  const home = temporaryFolder()
  const all = new Map([...original, ...changes])
  writeFiles(home, new Map([...all].map(([path, content]) => [path, Buffer.from(content)])))
  writeFileSync(join(home, 'trusted'), HOST_POLICY)
  return home
}

interface Imported {
  code: number
  stderr: string
  report: CopyReport & { reason?: string }
}

/** Imports a mirror into a data folder, trusting the policy file beside the mirror. */
async function importInto(
  data: string,
  mirror: string,
  options: { flags?: readonly string[]; env?: Record<string, string> } = {},
): Promise<Imported> {
  const flags = options.flags ?? ['--policy', join(mirror, 'trusted')]
  const { code, stdout, stderr } = await run(
    ['import', 'mirror', mirror, '--data-dir', data, '--json', ...flags],
    { env: options.env ?? {} },
  )
  return { code, stderr, report: JSON.parse(stdout) as Imported['report'] }
}

const verified = async (data: string): Promise<unknown> => {
  const { code, stdout } = await run(['verify-archive', '--payloads', '--json', '--data-dir', data])
  return [code, (JSON.parse(stdout) as { findings: unknown }).findings]
}

const emptyTarget = (): string => join(temporaryFolder(), 'data')

/** A data folder that holds the first entries of the sample, and its mirror. */
async function targetOf(entries: number): Promise<string> {
  const data = emptyTarget()
  expect(await importInto(data, mirrorOf(new Map(), staticFiles(archive, entries)))).toMatchObject({
    code: 0,
  })
  return data
}

/** Everything that readers can see in a data folder: the ledger and the files of the object store. */
async function contentOf(data: string): Promise<unknown> {
  return [await reopenWorkspace(data).ledger.read(), filesOfFolder(join(data, 'objects'))]
}

test('a restored older backup publishes again after the missing entry is imported from a mirror', async () => {
  const days = [0, 1, 2, 3].map((index) => addDays(AS_OF, index))
  const workspace = await signedWorkspace(days.slice(0, 2))
  const env = logSettings(workspace.folder)
  const [backup, restored] = [join(temporaryFolder(), 'backup'), join(temporaryFolder(), 'restored')]
  await run(['copy-archive', '--data-dir', workspace.folder, '--to', backup])
  await publishSigned(workspace, days.slice(2, 3))
  const { path, tree } = exportFolder(workspace)
  await exportTo(workspace, tree)
  await run(['copy-archive', '--data-dir', backup, '--to', restored])

  const log = workspace.log
  const target = { ...reopenWorkspace(restored, () => Date.now() + 60_000), log }
  const missing = expect.stringContaining('the checkpoint has 3 entries, the ledger only 2') as unknown
  expect(await run(['publish-year', '--once', '--data-dir', restored], { env })).toMatchObject({
    code: 74,
    stderr: missing,
  })
  await expect(publish(publishPortsOf(target))).rejects.toMatchObject({ code: 'storage_damaged' })

  const { code, report } = await importInto(restored, path, { flags: [], env })
  expect([code, report]).toMatchObject([
    0,
    {
      objects: { copied: 1, unchanged: 2 },
      heads: { copied: 1, unchanged: 2 },
      logFiles: { copied: 1, unchanged: 0 },
      entries: { copied: 1, unchanged: 2 },
      head: { seq: 3 },
    },
  ])
  expect((await target.ledger.read()).rows).toEqual((await workspace.ledger.read()).rows)
  await publishSigned(target, days.slice(3))
  const { rows } = await target.ledger.read()
  expect(rows).toHaveLength(4)
  expect(await auditLog(log, target.objects, rows)).toEqual({ newest: 4, cosigned: 0, problems: [] })
  expect(await verified(restored)).toEqual([0, []])
  // Readers of the mirror see one history, too.
  await exportTo(target, tree)
  expect(readFileSync(join(path, CHECKPOINT), 'utf8').split('\n')[1]).toBe('4')
})

describe('an import of a mirror', () => {
  test('an empty target receives both ledgers, every publication and the checkpoint', async () => {
    const data = emptyTarget()
    const { code, report, stderr } = await importInto(data, mirrorOf())
    expect([code, stderr]).toEqual([0, ''])
    expect(report).toMatchObject({
      entries: { copied: size, unchanged: 0 },
      legacy: { copied: 2, unchanged: 0 },
      objects: { copied: archive.objects.size, unchanged: 0 },
      heads: { copied: size, unchanged: 0 },
      logFiles: { copied: 2, unchanged: 0 },
    })
    const { ledger, objects } = reopenWorkspace(data)
    expect(await ledger.read()).toEqual(archive.contents)
    const policy = await objects.logFiles.get({ kind: 'policy', number: 1 })
    expect(Buffer.from(policy ?? []).toString()).toBe(HOST_POLICY)
    expect(await verified(data)).toEqual([0, []])
  })

  test('a ledger that was lost is recovered beside the objects and heads that remain', async () => {
    const data = await targetOf(size)
    rmSync(join(data, 'ledger.db'))
    const { code, report } = await importInto(data, mirrorOf())
    expect([code, report]).toMatchObject([
      0,
      { entries: { copied: size }, objects: { copied: 0 }, heads: { copied: 0, unchanged: size } },
    ])
    expect(await verified(data)).toEqual([0, []])
  })

  test('a repeated import changes nothing', async () => {
    const data = await targetOf(size)
    const before = await contentOf(data)
    const { code, report } = await importInto(data, mirrorOf(), { flags: [] })
    const none = { copied: 0 }
    expect([code, report]).toMatchObject([
      0,
      { objects: none, heads: none, logFiles: { copied: 0, unchanged: 1 }, entries: none, legacy: none },
    ])
    expect(await contentOf(data)).toEqual(before)
  })

  test('a mirror with fewer entries than the archive changes nothing, and a note says so', async () => {
    const data = await targetOf(size - 2)
    expect(await importInto(data, mirrorOf())).toMatchObject({ code: 0 })
    const before = await contentOf(data)
    const { code, stderr } = await importInto(data, mirrorOf(new Map(), staticFiles(archive, size - 2)))
    expect([code, stderr]).toEqual([
      0,
      `the archive has ${size} entries and the mirror only ${size - 2}: no entry is copied\n`,
    ])
    expect(await contentOf(data)).toEqual(before)
  })

  test('an imported older archive keeps the mark of its founding, and another one is refused', async () => {
    const opened = await openWorkspace(() => Date.now() + 60_000)
    await importArchive(importPortsOf(opened, SAMPLE_ARCHIVE))
    const workspace = { ...opened, log: signedLogIn(opened.folder) }
    const env = logSettings(workspace.folder)
    await signLedger({ ...publishPortsOf(workspace), log: workspace.log })
    const { path, tree } = exportFolder(workspace)
    await exportTo(workspace, tree)
    const before = await contentOf(workspace.folder)
    expect(await importInto(workspace.folder, path, { flags: [], env })).toMatchObject({
      code: 0,
      report: { legacy: { copied: 0, unchanged: 3 } },
    })
    expect(await contentOf(workspace.folder)).toEqual(before)

    const other = await openWorkspace()
    const grant = await other.ledger.takeLease({ name: 'x', process: null }, 1, 1_000, () => false)
    const mark = { seq: 1, leaf: 'a'.repeat(64), beganAt: 1 }
    await other.ledger.beginFounding(mark, { token: grant.granted ? grant.token : '', now: 2 })
    expect(await importInto(other.folder, path, { flags: [], env })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('an import of another archive was started there') as unknown,
    })
    expect((await other.ledger.read()).rows).toEqual([])
  })

  test('a lost publication is recovered', async () => {
    const data = await targetOf(size)
    const [sha256 = ''] = archive.objects.keys()
    rmSync(join(data, 'objects', 'sha256', sha256.slice(0, 2), sha256))
    const { code, report } = await importInto(data, mirrorOf())
    expect([code, report.objects]).toMatchObject([0, { copied: 1 }])
    expect(await verified(data)).toEqual([0, []])
  })

  test('cosignatures of witnesses in the trusted policy are stored, others are not', async () => {
    const [known, unknown] = [testWitness('w1', 3), testWitness('w2', 4)]
    const note = noteOf(archive)
    const text = `${note.split('\n\n')[0]}\n`
    const lines = [unknown.cosign(text, 1_000), known.cosign(text, 2_000)]
    const mirror = mirrorOf(new Map([[CHECKPOINT, `${note}${lines.join('\n')}\n`]]))
    const policy = HOST_POLICY.replace('quorum none', `witness w1 ${known.vkey}\nquorum w1`)
    writeFileSync(join(mirror, 'trusted'), policy)
    const data = emptyTarget()
    expect(await importInto(data, mirror)).toMatchObject({ code: 0 })
    expect(readdirSync(join(data, 'objects', 'tlog', 'year')).sort()).toEqual(
      [`${size}`, `${size}.${known.vkey.split('+')[1]}.2000`, 'policy.1'].sort(),
    )
    expect(readFileSync(join(data, 'objects', 'tlog', 'year', `${size}`), 'utf8')).toBe(note)
    expect(await verified(data)).toEqual([0, []])
  })

  test('a damaged tile of hashes does not matter, because the entries give the signed root', async () => {
    const mirror = mirrorOf(new Map([[`tlog/year/tile/0/000.p/${size}`, 'x'.repeat(32 * size)]]))
    const data = emptyTarget()
    expect(await importInto(data, mirror)).toMatchObject({ code: 0 })
    expect(await verified(data)).toEqual([0, []])
  })
})

describe('the refusal of a mirror', () => {
  const BUNDLE = `tlog/year/tile/entries/000.p/${size}`
  const OBJECT = staticObjectPath(archive.contents.rows.at(-1)?.sha256 ?? '')
  const changed = (path: string): Buffer => {
    const bytes = Buffer.from(files.get(path) ?? [])
    bytes[bytes.length - 5] = (bytes[bytes.length - 5] ?? 0) ^ 1
    return bytes
  }

  test.each([
    ['a changed checkpoint', CHECKPOINT, changed(CHECKPOINT), 1, 'the mirror has no checkpoint of this log'],
    ['a checkpoint that is no note', CHECKPOINT, 'nonsense', 1, 'it is not a signed note'],
    ['a changed bundle', BUNDLE, changed(BUNDLE), 74, `tile_mismatch ${BUNDLE}`],
    ['a cut bundle', BUNDLE, 'x', 74, `tile_mismatch ${BUNDLE}`],
    ['no bundle', BUNDLE, null, 74, `tile_mismatch ${BUNDLE}: expected the ${size} entries`],
    [
      'a changed legacy ledger',
      'ledger/legacy.ndjson',
      changed('ledger/legacy.ndjson'),
      74,
      'legacy_publications',
    ],
    ['no legacy ledger', 'ledger/legacy.ndjson', null, 74, 'legacy_publications'],
    ['a changed publication', OBJECT, changed(OBJECT), 74, 'does not match its digest'],
    ['a cut publication', OBJECT, '{}', 74, 'has 2 bytes instead of'],
    ['no publication', OBJECT, null, 74, 'is missing'],
  ])(
    'a mirror with %s is refused and the archive serves what it served',
    async (_what, path, content, code, why) => {
      const data = await targetOf(size - 1)
      const before = await contentOf(data)
      const mirror = mirrorOf(content === null ? new Map() : new Map([[path, content]]))
      if (content === null) rmSync(join(mirror, path))
      const refused = await importInto(data, mirror)
      expect([refused.code, refused.stderr]).toEqual([code, expect.stringContaining(why)])
      expect(await contentOf(data)).toEqual(before)
    },
  )

  test('a mirror of another log is refused', async () => {
    const data = await targetOf(size - 1)
    const before = await contentOf(data)
    const other = signerKey(LOG_NAME, new Uint8Array(32).fill(8))
    const mirror = mirrorOf(new Map([[CHECKPOINT, noteOf(archive, size, other)]]))
    expect(await importInto(data, mirror)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('it is not signed by a trusted key of the log') as unknown,
    })
    expect(await contentOf(data)).toEqual(before)
  })

  test.each([
    ['longer', size - 1],
    ['shorter', size],
  ])('a %s mirror of another history with the same key is refused', async (_which, entries) => {
    const data = await targetOf(entries)
    const before = await contentOf(data)
    const fork = rewritten(archive, 3, { reason: 'attempts_spent', attempts: 3 })
    const mirror = mirrorOf(new Map(), staticFiles(fork, 2 * size - 1 - entries))
    expect(await importInto(data, mirror)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('its ledger entry 3 differs from the mirror') as unknown,
    })
    expect(await contentOf(data)).toEqual(before)
  })

  test('a policy that the user gives must accept the mirror, too', async () => {
    const data = await targetOf(size - 1)
    const mirror = mirrorOf()
    writeFileSync(join(mirror, 'trusted'), HOST_POLICY.replace(/^log .*\n/, ''))
    expect(await importInto(data, mirror)).toMatchObject({ code: 1 })
    expect(await importInto(data, mirror, { flags: [] })).toMatchObject({ code: 0 })
  })

  test('a source without a checkpoint, and a target without a policy or a key, are refused as wrong use', async () => {
    const data = emptyTarget()
    expect(await run(['import', 'mirror', temporaryFolder(), '--data-dir', data])).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('the source has no file tlog/year/checkpoint') as unknown,
    })
    expect(readdirSync(join(data, '..'))).toEqual([])
    expect(await run(['import', 'mirror', mirrorOf(), '--data-dir', data])).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('no policy names the key') as unknown,
    })
    expect((await reopenWorkspace(data).ledger.read()).rows).toEqual([])
  })
})
