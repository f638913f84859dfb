import { createHash } from 'node:crypto'
import { lstatSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Container } from '../../../src/cli/container.ts'
import { readConfig } from '../../../src/cli/settings/read-config.ts'
import { openObjects } from '../../../src/adapters/objects/open.ts'
import type { LedgerAuditor, ObjectsAuditor } from '../../../src/domain/ports.ts'
import { auditLedger, proveLedger } from '../../../src/domain/year/check.ts'
import { proveBytes } from '../../../src/domain/year/envelope.ts'
import type { Head, KeptHead, LedgerContents } from '../../../src/domain/year/ledger.ts'
import { audit as auditArchive } from '../../../src/jobs/archive/audit.ts'
import type { VerifyResult } from '../../../src/jobs/archive/audit.ts'
import { ownArchive, readHeads } from '../../../src/jobs/archive/own-archive.ts'
import { brokenRules } from '../../domain/year/naive-ledger.ts'
import { cellDamage } from '../../support/damage/cell-damage.ts'
import type { Damage } from '../../support/damage/damage.ts'
import { ledgerDamage } from '../../support/damage/ledger-damage.ts'
import { objectStoreDamage } from '../../support/damage/object-damage.ts'
import { makeDamageSample } from '../../support/damage/sample.ts'
import type { DamageSample } from '../../support/damage/sample.ts'
import { reopenWorkspace } from '../../support/workspace.ts'

const NEVER = new AbortController().signal

let sample: DamageSample
let everyDamage: readonly Damage[]

beforeAll(async () => {
  sample = await makeDamageSample()
  const { contents } = sample
  everyDamage = [...objectStoreDamage(contents), ...cellDamage(contents), ...ledgerDamage(contents)]
})

afterAll(() => sample.remove())

/** Lists every path of a folder with the digest of a file or the kind of any other entry. */
function stateOf(folder: string): Map<string, string> {
  return new Map(
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .sort()
      .map((name) => {
        const path = join(folder, name)
        const stat = lstatSync(path)
        if (stat.isFile()) return [name, createHash('sha256').update(readFileSync(path)).digest('hex')]
        return [name, stat.isDirectory() ? 'folder' : 'other']
      }),
  )
}

describe('the sample', () => {
  test('the sample is an archive that a server proves completely, down to every payload', async () => {
    const { ledger, objects, year } = reopenWorkspace(sample.restore().folder)
    const { proved, head } = await year.read()
    expect(head).toMatchObject({ seq: sample.keptHead.seq, leaf: sample.keptHead.leaf })
    expect(proveLedger(await ledger.read(), sample.keptHead).timeline).toHaveLength(9)
    for (const { manifest } of proved.timeline) {
      expect(proveBytes(manifest, await objects.get(manifest.sha256)).byteLength).toBe(manifest.byteSize)
    }
  })

  test('the sample contains every kind of row', async () => {
    const { proved } = await reopenWorkspace(sample.restore().folder).year.read()
    const kinds = proved.entries.map((entry) =>
      entry.kind === 'publication'
        ? entry.manifest.algorithmVersion
        : entry.kind === 'gap'
          ? entry.reason
          : entry.kind,
    )
    expect(kinds).toEqual([
      'top-year-v2',
      'top-year-v2',
      'legacy-seal',
      'top-year-v3',
      'missed',
      'attempts_spent',
      'top-year-v3',
      'top-year-v3',
      'top-year-v3',
    ])
    expect(proved.timeline.filter(({ ledger }) => ledger === 'v1')).toHaveLength(3)
  })
})

/** Audits a folder with the code that audits an operator's archive, and returns the report and the contents. */
async function audit(folder: string, expectedHead: KeptHead | null): Promise<VerifyResult & { read: Read }> {
  const container = new Container({ config: readConfig({ dataDir: folder }, {}, '/'), version: '0' })
  try {
    const options = { sample: null, since: null, expectedHead, payloads: false, isWhole: true, jobs: 1 }
    const ledger = await container.ledgerAuditor()
    const objects = await container.objectsAuditor(options)
    const archive = ownArchive({ ledger, objects }, { ...options, onNote: () => undefined })
    const ports = { clock: Date.now, random: Math.random, onProgress: () => undefined }
    const result = await auditArchive(archive, ports, { ...options, signal: NEVER })
    return { ...result, read: await readable(ledger, objects) }
  } finally {
    await container.close()
  }
}

/** Both ledgers and every head, when all of them can be read. */
type Read = { contents: LedgerContents; heads: Head[] } | null

async function readable(ledger: LedgerAuditor, objects: ObjectsAuditor): Promise<Read> {
  try {
    const [contents, audited] = [await ledger.read(), await readHeads(objects)]
    const heads = audited.flatMap(({ head }) => head ?? [])
    return contents?.unreadable.length === 0 && heads.length === audited.length ? { contents, heads } : null
  } catch {
    return null
  }
}

describe('damage of an archive', () => {
  test('the list of damage has unique names, and an example of each finding but those of a host', () => {
    const names = everyDamage.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
    expect(names.length).toBeGreaterThan(700)
    expect(new Set(everyDamage.flatMap(({ expects }) => expects)).size).toBe(12)
  })

  test('an audit reports every damage, and only a note for an object without an entry', async () => {
    const { folder } = sample.restore()
    const before = stateOf(folder)
    expect(await audit(folder, sample.keptHead)).toMatchObject({ report: { ok: true, findings: [] } })
    let judged = 0
    for (const { name, expects, needsKeptHead, apply } of everyDamage) {
      await apply(sample.restore())
      expect(stateOf(folder), name).not.toEqual(before)
      const { report, cause, read } = await audit(folder, needsKeptHead ? sample.keptHead : null)
      const reported = report.findings.map(({ code }) => code)
      const isReported = reported.some((code) => expects.includes(code))
      const isNote = expects.includes('orphan_object')
      expect({ name, reported, isReported, ok: report.ok, cause }).toEqual({
        name,
        reported,
        isReported: true,
        ok: isNote,
        cause: null,
      })
      if (read === null) continue
      judged += 1
      // The check agrees with a second implementation of the rules for everything readable.
      const broken = brokenRules(read.contents, { heads: read.heads, seen: 'all' })
      const heads = read.heads.map((head) => ({ path: `heads/${head.seq}`, seq: head.seq, head }))
      const { findings } = auditLedger(read.contents, heads, null)
      expect({ name, broken, found: findings.length > 0 }).toEqual({ name, broken, found: broken.length > 0 })
    }
    expect(judged).toBeGreaterThan(150)
  })

  test('damage needs a kept head only if both stores still prove each other', async () => {
    for (const { name, apply } of everyDamage.filter(({ needsKeptHead }) => needsKeptHead)) {
      const copy = sample.restore()
      await apply(copy)
      const { year, objects } = reopenWorkspace(copy.folder)
      const { proved } = await year.read()
      for (const { manifest } of proved.timeline) {
        const bytes = await objects.get(manifest.sha256)
        expect(proveBytes(manifest, bytes), name).toBe(bytes)
      }
    }
  })

  test('a missing newest head is not damage: a crash after a commit leaves it missing', async () => {
    const { folder, objectsPath } = sample.restore()
    rmSync(join(objectsPath, 'heads', String(sample.keptHead.seq)))
    await expect(reopenWorkspace(folder).year.read()).resolves.toBeDefined()
    const objects = openObjects({ kind: 'file', path: objectsPath })
    expect((await objects.newestHead())?.seq).toBe(sample.keptHead.seq - 1)
  })
})
