import { createHash } from 'node:crypto'
import { lstatSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Container } from '../../../src/cli/container.ts'
import { readConfig } from '../../../src/cli/settings/read-config.ts'
import { openObjects } from '../../../src/adapters/objects/open.ts'
import { makeDamageSample } from '../../../src/adapters/damage/sample.ts'
import type { Auditors } from '../../../src/domain/ports.ts'
import type { DamageSample } from '../../../src/domain/year/finding.ts'
import { auditLedger, proveLedger } from '../../../src/domain/year/check.ts'
import type { Head, KeptHead, LedgerContents } from '../../../src/domain/year/ledger.ts'
import { selfTest } from '../../../src/jobs/self-test.ts'
import type { SelfTestPorts } from '../../../src/jobs/self-test.ts'
import { verifyArchive } from '../../../src/jobs/archive/verify-archive.ts'
import type { VerifyResult } from '../../../src/jobs/archive/verify-archive.ts'
import { proveBytes } from '../../../src/domain/year/envelope.ts'
import { reopenWorkspace } from '../../support/workspace.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { brokenRules } from '../../domain/year/naive-ledger.ts'
import { everyMutation } from './every-mutation.ts'

const NEVER = new AbortController().signal

/** As the self-test has it, and with every mutation there is. */
let sample: DamageSample
let all: DamageSample

beforeAll(async () => {
  sample = await makeDamageSample()
  all = await makeDamageSample(tmpdir(), everyMutation)
})

afterAll(() => Promise.all([sample.remove(), all.remove()]))

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
    const { ledger, objects, year } = reopenWorkspace(await sample.restore())
    const { proved, head } = await year.read()
    expect(head).toMatchObject({ seq: sample.keptHead.seq, leaf: sample.keptHead.leaf })
    expect(proveLedger(await ledger.read(), sample.keptHead).timeline).toHaveLength(9)
    for (const { manifest } of proved.timeline) {
      expect(proveBytes(manifest, await objects.get(manifest.sha256)).byteLength).toBe(manifest.byteSize)
    }
  })

  test('the sample contains every kind of row', async () => {
    const { proved } = await reopenWorkspace(await sample.restore()).year.read()
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

  test('the sample is identical each time it is made, except for the ledger file', async () => {
    const other = await makeDamageSample(await temporaryFolder())
    const objects = (folder: string): Map<string, string> => stateOf(join(folder, 'objects'))
    expect(objects(await other.restore())).toEqual(objects(await sample.restore()))
    expect(other.keptHead).toEqual(sample.keptHead)
    await other.remove()
  })

  test('the sample leaves nothing behind when it is removed', async () => {
    const parent = await temporaryFolder()
    const other = await makeDamageSample(parent)
    expect(readdirSync(parent)).toHaveLength(1)
    await other.remove()
    expect(readdirSync(parent)).toEqual([])
  })
})

/** Audits a folder with the code that audits an operator's archive, and returns the report and the contents. */
async function audit(folder: string, expectedHead: KeptHead | null): Promise<VerifyResult & { read: Read }> {
  const container = new Container({ config: readConfig({ dataDir: folder }, {}, '/'), version: '0' })
  try {
    const auditors = await container.auditors()
    const silent = { onProgress: () => undefined, onNote: () => undefined }
    const ports = { ...auditors, clock: Date.now, random: Math.random, ...silent }
    const options = { sample: null, since: null, expectedHead, payloads: false, jobs: 1, signal: NEVER }
    return { ...(await verifyArchive(ports, options)), read: await readable(auditors) }
  } finally {
    await container.close()
  }
}

/** Both ledgers and every head, when all of them can be read. */
type Read = { contents: LedgerContents; heads: Head[] } | null

async function readable({ ledger, objects }: Auditors): Promise<Read> {
  try {
    const [contents, audited] = [await ledger.read(), await objects.heads()]
    const heads = audited.flatMap(({ head }) => head ?? [])
    return contents?.unreadable.length === 0 && heads.length === audited.length ? { contents, heads } : null
  } catch {
    return null
  }
}

describe('every mutation', () => {
  test('every mutation has a unique name, and the self-test has one for each kind of finding', () => {
    const names = all.mutations.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
    expect(names.length).toBeGreaterThan(350)
    expect(new Set(sample.mutations.flatMap(({ expects }) => expects)).size).toBe(12)
  })

  test('every mutation changes the archive, is reported as expected, and is undone without a trace', async () => {
    const before = stateOf(await all.restore())
    const makeSample = async (): Promise<DamageSample> => ({
      ...all,
      mutations: all.mutations.map((mutation) => ({
        ...mutation,
        async apply(folder) {
          await mutation.apply(folder)
          expect(stateOf(folder), mutation.name).not.toEqual(before)
        },
      })),
      remove: async () => undefined,
    })
    let judged = 0
    const auditAndJudge: SelfTestPorts['audit'] = async (folder, keptHead) => {
      const { read, ...result } = await audit(folder, keptHead)
      if (read === null) return result
      judged += 1
      // The check agrees with a second implementation of the rules for everything readable.
      const broken = brokenRules(read.contents, { heads: read.heads, seen: 'all' })
      const heads = read.heads.map((head) => ({ path: `heads/${head.seq}`, seq: head.seq, head }))
      const { findings } = auditLedger(read.contents, heads, null)
      expect({ broken, found: findings.length > 0 }).toEqual({ broken, found: broken.length > 0 })
      return result
    }
    const ports = { makeSample, audit: auditAndJudge, onProgress: () => undefined }
    const report = await selfTest(ports, NEVER)
    expect(report).toEqual({ mutations: all.mutations.length, detected: all.mutations.length, missed: [] })
    expect(judged).toBeGreaterThan(150)
    expect(stateOf(await all.restore())).toEqual(before)
  })

  test('a mutation needs a kept head only if both stores still prove each other', async () => {
    for (const mutation of all.mutations.filter(({ needsKeptHead }) => needsKeptHead)) {
      const folder = await all.restore()
      await mutation.apply(folder)
      const { year, objects } = reopenWorkspace(folder)
      const { proved } = await year.read()
      for (const { manifest } of proved.timeline) {
        const bytes = await objects.get(manifest.sha256)
        expect(proveBytes(manifest, bytes), mutation.name).toBe(bytes)
      }
    }
  })

  test('a missing newest head is not damage: a crash after a commit leaves it missing', async () => {
    const folder = await sample.restore()
    rmSync(join(folder, 'objects', 'heads', String(sample.keptHead.seq)))
    await expect(reopenWorkspace(folder).year.read()).resolves.toBeDefined()
    const objects = openObjects({ kind: 'file', path: join(folder, 'objects') })
    expect((await objects.newestHead())?.seq).toBe(sample.keptHead.seq - 1)
  })
})
