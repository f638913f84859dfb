import { chmodSync, cpSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { H3 } from 'h3'
import { describe, expect, test } from 'vitest'
import { addDays, formatInstant } from '../../../src/domain/time.ts'
import { parsePolicy, openCheckpoint } from '../../../src/domain/year/log/signed-note.ts'
import {
  asOfProofSchema,
  entriesUntilNext,
  parseLogProof,
  verifyLogProof,
} from '../../../src/domain/year/log/log-proof.ts'
import { merkleTree, rootAt } from '../../../src/domain/year/log/merkle-tree.ts'
import { parseLeafText } from '../../../src/domain/year/ledger.ts'
import type { LedgerRow } from '../../../src/domain/year/ledger.ts'
import type { Checkpoint, VerifierKey } from '../../../src/domain/year/log/signed-note.ts'
import { parseEntryBundle, parseTile, tilePath, tilesOfSize } from '../../../src/domain/year/log/tiles.ts'
import { proveLedger } from '../../../src/domain/year/check.ts'
import type { Compute } from '../../../src/server/computed-requests.ts'
import { logRoutes, servedLog } from '../../../src/server/year/log-routes.ts'
import { provedPublications } from '../../../src/server/year/proved-publications.ts'
import { chainOf, gap, headAt, legacyRow, legacySeal, publication } from '../../domain/year/ledger-rows.ts'
import { openApp, silentLog } from '../../support/api-client.ts'
import { requestRoute } from '../contract-client.ts'
import type { ContractResponse } from '../contract-client.ts'
import { signedWorkspace } from '../../support/exports.ts'
import type { SignedWorkspace } from '../../support/exports.ts'
import { AS_OF, publishedWorkspace } from '../../support/workspace.ts'
import type { Workspace } from '../../support/workspace.ts'

/** Published days; the third day is a gap. */
const DAYS = [0, 1, 3].map((index) => addDays(AS_OF, index))

interface Scene {
  workspace: Workspace
  log: SignedWorkspace['log']
  app: H3
  get: (path: string) => Promise<ContractResponse>
}

async function scene(days = DAYS): Promise<Scene> {
  const workspace = await signedWorkspace(days)
  const app = openApp(workspace)
  return { workspace, log: workspace.log, app, get: (path) => requestRoute(app, `/tlog/year/${path}`) }
}

async function keysOf({ get }: Scene): Promise<VerifierKey[]> {
  const parsed = parsePolicy((await get('policy')).text)
  if (parsed.problem !== null) throw new Error(parsed.problem)
  return parsed.keys
}

async function checkpointOf(at: Scene): Promise<Checkpoint> {
  const opened = openCheckpoint((await at.get('checkpoint')).text, await keysOf(at))
  if (opened.problem !== null) throw new Error(opened.problem)
  return opened.checkpoint
}

const rowOf = (entry: Uint8Array): LedgerRow | null => parseLeafText(Buffer.from(entry).toString())

describe('the served log', () => {
  test('a client can rebuild the log from the checkpoint, the tiles and the entries', async () => {
    const at = await scene()
    const { size, root, origin } = await checkpointOf(at)
    expect([origin, size]).toEqual([at.log.signer.key.name, 4])
    const { rows } = await at.workspace.ledger.read()
    for (const tile of tilesOfSize(size)) {
      const { status, bytes } = await at.get(tilePath(tile))
      expect(status).toBe(200)
      // As clients made from the OpenAPI document do.
      const encoded = tilePath(tile).replace(/(?<=tile\/.+)\//g, '%2F')
      expect((await at.get(encoded)).bytes).toEqual(bytes)
      if (tile.level === 'entries') expect(parseEntryBundle(bytes, tile.width)?.map(rowOf)).toEqual(rows)
      else expect(rootAt(merkleTree(parseTile(bytes, tile.width) ?? []), size)).toEqual(Buffer.from(root))
    }
  })

  // prettier-ignore
  test.each([
    'tile/0/000', 'tile/0/000.p/5', 'tile/0/001.p/1', 'tile/1/000.p/1', 'tile/entries/000', 'tile/0/000.p/0', 'tile/0/0', 'tile/00/000',
    'tile/data/000.p/1', 'tile/0/000.p/1/', 'tile/0/x000/000.p/1', 'tile/', 'tile/0/..%2f000.p/1',
  ])('%s is 404', async (path) => {
    expect(await (await scene()).get(path)).toMatchObject({ status: 404, error: 'year_log_not_found' })
  })

  test('the stored files are listed once in two seconds, however many requests there are, and a new policy is served then', async () => {
    const { workspace, log } = await scene()
    const { objects } = workspace
    let listings = 0
    const list = (): ReturnType<typeof objects.logFiles.list> => {
      listings += 1
      return objects.logFiles.list()
    }
    let now = Date.now()
    const counted = { ...objects, logFiles: { ...objects.logFiles, list } }
    const app = openApp({ ...workspace, objects: counted }, { clock: () => now })
    const served = async (): Promise<string> => (await requestRoute(app, '/tlog/year/policy')).text
    for (let request = 0; request < 5; request += 1) expect(await served()).toBe(log.policy)
    expect(listings).toBe(1)
    await objects.logFiles.put({ kind: 'policy', number: 2 }, Buffer.from(`# moved\n${log.policy}`))
    now += 2_000
    expect(await served()).toMatch(/^# moved\n/)
    expect(listings).toBe(2)
  })

  test('every path is 404 while no checkpoint is signed', async () => {
    const workspace = await publishedWorkspace([AS_OF])
    const app = openApp(workspace)
    for (const path of ['checkpoint', 'policy', 'tile/0/000.p/1', 'proof'])
      expect(await requestRoute(app, `/tlog/year/${path}`)).toMatchObject({
        status: 404,
        error: 'year_log_not_found',
      })
  })
})

describe('served proof files', () => {
  test('the proof file of each publication, by default the newest, is verified with the keys of the policy and contains the digest of the served bytes', async () => {
    const at = await scene()
    const keys = await keysOf(at)
    const { proved } = await at.workspace.year.read()
    for (const { manifest } of proved.timeline) {
      const time = formatInstant(manifest.publishedAt)
      const { text, headers } = await at.get(`proof?at=${time}`)
      expect(headers.get('content-type')).toBe('text/plain; charset=utf-8')
      const proof = parseLogProof(text)
      if (proof === null) throw new Error(text)
      expect(verifyLogProof(proof, keys)).toMatchObject({ problem: null, checkpoint: { size: 4 } })
      const body = await requestRoute(at.app, `/api/feed/history?sort=year&at=${time}`)
      expect(rowOf(proof.entry)?.sha256).toBe(body.headers.get('etag')?.replaceAll('"', ''))
    }
    expect(parseLogProof((await at.get('proof')).text)?.index).toBe(3)
  })

  test('until=next returns the proofs of all entries up to the next publication', async () => {
    const at = await scene()
    const { timeline } = (await at.workspace.year.read()).proved
    const time = formatInstant(timeline[1]?.manifest.publishedAt ?? 0)
    const { text, headers } = await at.get(`proof?at=${time}&until=next`)
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8')
    const { proofs, ...rest } = asOfProofSchema.parse(JSON.parse(text))
    expect(rest).toEqual({ at: time, legacy: null })
    expect(proofs.map((proof) => parseLogProof(proof)?.index)).toEqual([1, 2, 3])
  })

  test.each([
    [`at=2020-01-01T00:00:00Z`, 404, 'year_log_not_found'],
    ['at=yesterday', 400, 'invalid_at'],
    ['at=2026-03-01T00:00:00Z&at=2026-03-01T00:00:00Z', 400, 'invalid_at'],
    ['at=2999-01-01T00:00:00Z', 400, 'invalid_at'],
    ['until=last', 400, 'invalid_until'],
  ])('the query %j is refused with %i %s', async (query, status, error) => {
    expect(await (await scene()).get(`proof?${query}`)).toMatchObject({ status, error })
  })
})

describe('entries until the next publication', () => {
  const legacy = [legacyRow(1, '2025-12-30')]
  const rows = chainOf([
    publication('2025-12-31'),
    legacySeal(legacy),
    gap('2026-01-01'),
    publication('2026-01-02'),
    publication('2026-01-03'),
  ])
  const { timeline, ...proved } = proveLedger({ rows, legacy, founding: null }, headAt(rows, rows.length))

  test.each([
    [{ ledger: 'v1', seq: 1 }, 5, [1, 2, 3, 4]],
    [{ ledger: 'versioned', seq: 1 }, 5, [1, 2, 3, 4]],
    [{ ledger: 'versioned', seq: 1 }, 3, [1, 2, 3]],
    [{ ledger: 'v1', seq: 1 }, 1, null],
    [{ ledger: 'versioned', seq: 4 }, 5, [4, 5]],
    [{ ledger: 'versioned', seq: 5 }, 5, [5]],
    [{ ledger: 'versioned', seq: 5 }, 4, null],
  ] as const)(
    'the entries until the publication after %j in a tree of %i entries are %j',
    (selected, size, seqs) => {
      expect(timeline).toHaveLength(4)
      expect(entriesUntilNext(proved, selected, size)).toEqual(seqs)
    },
  )
})

describe('refusals with 503', () => {
  const corrupt = { status: 503, error: 'year_log_archive_corrupt' }
  const logFolder = ({ workspace }: Scene): string => join(workspace.objectsPath, 'tlog', 'year')

  test.each([
    ['a note with another root', '4', 'x\n4\nAAAA\n\n— x AAAAAAAA\n'],
    ['a policy of another log', 'policy.1', 'quorum none\n'],
  ])('the server refuses %s', async (_what, name, text) => {
    const at = await scene()
    const path = join(logFolder(at), name)
    chmodSync(path, 0o600)
    writeFileSync(path, text)
    for (const each of ['checkpoint', 'tile/0/000.p/1', 'policy', 'proof'])
      expect(await at.get(each)).toMatchObject(corrupt)
  })

  test('the server refuses a newest note that is older than one it served before', async () => {
    const at = await scene()
    let now = Date.now()
    const app = openApp(at.workspace, { clock: () => now })
    expect((await requestRoute(app, '/tlog/year/checkpoint')).status).toBe(200)
    for (const lost of [join(logFolder(at), '4'), logFolder(at)]) {
      rmSync(lost, { recursive: true })
      now += 2_000
      expect(await requestRoute(app, '/tlog/year/checkpoint')).toMatchObject(corrupt)
    }
  })

  test('the server refuses a ledger that does not continue the newest note', async () => {
    const at = await scene()
    const other = await scene([addDays(AS_OF, 1), addDays(AS_OF, 2), addDays(AS_OF, 4)])
    rmSync(logFolder(at), { recursive: true })
    cpSync(logFolder(other), logFolder(at), { recursive: true })
    expect(readdirSync(logFolder(at))).toContain('4')
    expect(await at.get('checkpoint')).toMatchObject(corrupt)
  })
})

test('several proofs are computed when it is the turn of their caller, and one proof at once', async () => {
  const { workspace } = await scene()
  const waited: string[] = []
  const compute: Compute = (event, run) => {
    waited.push(event.url.search)
    return run()
  }
  const publications = provedPublications({ ...workspace, clock: Date.now })
  const app = new H3()
  const routes = logRoutes(servedLog(workspace.objects.logFiles, publications, Date.now), Date.now, compute)
  for (const { path, handle } of routes) app.all(path, (event) => handle(event, silentLog))
  for (const path of ['checkpoint', 'policy', 'tile/0/000.p/4', 'proof', 'proof?until=next'])
    expect((await app.request(`http://dash.test/tlog/year/${path}`)).status, path).toBe(200)
  expect(waited).toEqual(['?until=next'])
})
