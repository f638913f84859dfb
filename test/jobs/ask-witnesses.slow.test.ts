import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { addDays, DAY_MS } from '../../src/domain/time.ts'
import { logFileName } from '../../src/domain/year/log/log-history.ts'
import { evaluatePolicy, formatPolicy, parsePolicy } from '../../src/domain/year/log/log-policy.ts'
import { parseNote } from '../../src/domain/year/log/signed-note.ts'
import type { PublishPorts, PublishResult } from '../../src/jobs/publish-year.ts'
import { signLedger } from '../../src/jobs/sign-checkpoint.ts'
import type { CheckpointReport } from '../../src/jobs/sign-checkpoint.ts'
import { openApp } from '../support/api-client.ts'
import { requestRoute } from '../support/contract-client.ts'
import { DAMAGED } from '../support/refusals.ts'
import { signedLogIn, storedCheckpoints } from '../support/signed-log.ts'
import { localWitness, MISBEHAVIOURS, policyOf, witnessesOf } from '../support/witness.ts'
import type { LocalWitness, Misbehaviour } from '../support/witness.ts'
import {
  AS_OF,
  openWorkspace,
  publish,
  publishPortsOf,
  reopenWorkspace,
  RUN_AT,
  sampleSignals,
  tickingClock,
} from '../support/workspace.ts'
import type { Workspace } from '../support/workspace.ts'

/** A workspace whose log has witnesses. Its clock is at the day of the last run. */
interface Scene {
  workspace: Workspace
  log: ReturnType<typeof signedLogIn>
  witnesses: LocalWitness[]
  /** Time of the last run. */
  clock: { ms: number }
  /** Lines that the last run printed. */
  lines: string[]
}

async function scene(count = 1, timeoutMs?: number): Promise<Scene> {
  const workspace = await openWorkspace()
  const log = signedLogIn(workspace.folder)
  const clock = { ms: RUN_AT }
  const now = (): number => Math.floor(clock.ms / 1000)
  const witnesses: LocalWitness[] = []
  for (let number = 1; number <= count; number += 1)
    witnesses.push(await localWitness(log.signer.key, { number, now }))
  for (let day = 0; day < 4; day += 1) await workspace.feed.importSignals(sampleSignals(addDays(AS_OF, day)))
  const policy = formatPolicy(log.signer.keys, null, policyOf(...witnesses))
  return {
    workspace,
    log: { ...log, policy, witnesses: witnessesOf(witnesses, timeoutMs) },
    witnesses,
    clock,
    lines: [],
  }
}

function portsOf(at: Scene, day: number, hours: number): PublishPorts {
  at.clock.ms = RUN_AT + day * DAY_MS + hours * 3_600_000
  at.lines.length = 0
  const onProgress = (line: string): void => void at.lines.push(line)
  return publishPortsOf(at.workspace, { log: at.log, clock: tickingClock(at.clock.ms), onProgress })
}

/** Publishes the day that is `day` days after the first, some hours after its first run. */
function publishDay(
  at: Scene,
  day: number,
  hours = 0,
  changes: Partial<PublishPorts> = {},
): Promise<PublishResult> {
  return publish({ ...portsOf(at, day, hours), ...changes })
}

function sign(at: Scene, day: number, hours = 0): Promise<CheckpointReport> {
  return signLedger({ ...portsOf(at, day, hours), log: at.log })
}

/** Names of the stored cosignatures without their key ids: `<size> <time as seconds after the first run>`. */
async function cosignatures({ workspace, witnesses }: Scene, number = 1): Promise<string[]> {
  const files = await workspace.objects.logFiles.list()
  return files
    .flatMap((file) =>
      file.kind === 'cosignature' && file.keyId === witnesses[number - 1]?.key.id ? [file] : [],
    )
    .map(({ size, time }) => `${size} ${time - RUN_AT / 1000}`)
    .sort()
}

/** First line of each request to a witness. */
const olds = (witness: LocalWitness | undefined): string[] =>
  (witness?.requests ?? []).map(({ body }) => body.split('\n')[0] ?? '')

/** Copies ledger, objects and the record of the key as a snapshot of the machine does; the result restores them. */
function snapshotOf({ workspace }: Scene, parts: string[]): () => Workspace {
  const snapshot = join(workspace.folder, 'snapshot')
  for (const part of parts) cpSync(join(workspace.folder, part), join(snapshot, part), { recursive: true })
  return () => {
    workspace.close()
    for (const part of parts) {
      rmSync(join(workspace.folder, part), { recursive: true })
      cpSync(join(snapshot, part), join(workspace.folder, part), { recursive: true })
    }
    return reopenWorkspace(workspace.folder)
  }
}

const WHOLE = ['ledger.db', 'objects', 'key']

const DAY_SECONDS = DAY_MS / 1000

describe('witnesses of a log', () => {
  test('each witness cosigns each checkpoint, and the served checkpoint meets the quorum', async () => {
    const at = await scene(2)
    for (const day of [0, 1]) {
      const { report, cause } = await publishDay(at, day)
      expect([report.witnesses, cause]).toEqual([
        ['w1.example', 'w2.example'].map((name) => ({ name, outcome: 'cosigned', reason: null })),
        null,
      ])
    }
    // The second run asks for the first checkpoint again before it publishes.
    for (const number of [1, 2])
      expect(await cosignatures(at, number)).toEqual(['1 0', `1 ${DAY_SECONDS}`, `2 ${DAY_SECONDS}`])
    expect(olds(at.witnesses[0])).toEqual(['old 0', 'old 1', 'old 1'])
    const served = await requestRoute(openApp(at.workspace), '/tlog/year/checkpoint')
    const parsed = parsePolicy((await requestRoute(openApp(at.workspace), '/tlog/year/policy')).text)
    const note = parseNote(served.text)
    if (parsed.problem !== null || note === null) throw new Error('the log is not served')
    expect(evaluatePolicy(parsed.policy, note)).toEqual({
      problem: null,
      hasQuorum: true,
      cosigners: ['w1.example', 'w2.example'].map((name) => ({ name, time: RUN_AT / 1000 + DAY_SECONDS })),
    })
  })

  test('a run without a new checkpoint stores a cosignature with a new time', async () => {
    const at = await scene()
    await publishDay(at, 0)
    expect((await publishDay(at, 0, 1)).report).toMatchObject({
      outcome: 'already-published',
      witnesses: [{ outcome: 'cosigned' }],
    })
    expect((await sign(at, 0, 2)).witnesses).toMatchObject([{ outcome: 'cosigned' }])
    expect(await cosignatures(at)).toEqual(['1 0', '1 3600', '1 7200'])
  })

  test('a gap is cosigned too', async () => {
    const at = await scene()
    const failing = { objects: { ...at.workspace.objects, put: () => Promise.reject(new Error('no room')) } }
    for (const hours of [0, 1, 2]) await publishDay(at, 0, hours, failing)
    expect(await cosignatures(at)).toEqual(['1 7200'])
  })

  test('a witness that is added later begins with the newest checkpoint', async () => {
    const at = await scene()
    const { witnesses } = at.log
    at.log.witnesses = null
    for (const day of [0, 1, 2]) await publishDay(at, day)
    at.log.witnesses = witnesses
    await publishDay(at, 2, 1)
    expect(olds(at.witnesses[0])).toEqual(['old 0'])
    expect(await cosignatures(at)).toEqual([`3 ${2 * DAY_SECONDS + 3_600}`])
  })

  test('a witness that has another size than the stored cosignatures is asked once more, from that size', async () => {
    const at = await scene()
    const { objects } = at.workspace
    const put: typeof objects.logFiles.put = (file, bytes) =>
      file.kind === 'cosignature' ? Promise.reject(new Error('no room')) : objects.logFiles.put(file, bytes)
    const fullStore = { objects: { ...objects, logFiles: { ...objects.logFiles, put } } }
    const { report, cause } = await publishDay(at, 0, 0, fullStore)
    expect([report.outcome, report.witnesses, cause]).toEqual([
      'published',
      [{ name: 'w1.example', outcome: 'failed', reason: 'no room' }],
      null,
    ])
    await publishDay(at, 1)
    expect(olds(at.witnesses[0])).toEqual(['old 0', 'old 0', 'old 1', 'old 1'])
    expect(await cosignatures(at)).toEqual([`1 ${DAY_SECONDS}`, `2 ${DAY_SECONDS}`])
  })

  test('a witness that lost its state is proved the whole tree again', async () => {
    const at = await scene()
    for (const day of [0, 1]) await publishDay(at, day)
    for (const witness of at.witnesses) witness.latest = null
    expect((await publishDay(at, 1, 1)).report.witnesses).toMatchObject([{ outcome: 'cosigned' }])
    expect(olds(at.witnesses[0]).slice(-2)).toEqual(['old 2', 'old 0'])
  })

  test('a witness that states other sizes again and again is asked twice for each checkpoint', async () => {
    const at = await scene()
    for (const day of [0, 1]) await publishDay(at, day)
    const [witness] = at.witnesses
    if (!witness) throw new Error('no witness')
    witness.requests.length = 0
    let size = 0
    witness.behaviour = ({ response }) =>
      response.writeHead(409, { 'content-type': 'text/x.tlog.size' }).end(`${(size += 1)}\n`)
    expect((await publishDay(at, 1, 1)).report).toMatchObject({
      outcome: 'already-published',
      witnesses: [{ outcome: 'failed', reason: 'it has cosigned size 2' }],
    })
    expect(olds(witness)).toEqual(['old 2', 'old 1'])
  })

  test.each(Object.entries<Misbehaviour>(MISBEHAVIOURS))(
    'a witness that %s is one line in the report, and the day is published and signed',
    async (_what, [behaviour, reason, timeoutMs]) => {
      const at = await scene(2, timeoutMs)
      await publishDay(at, 0)
      const [broken] = at.witnesses
      if (!broken) throw new Error('no witness')
      broken.behaviour = behaviour
      broken.requests.length = 0
      const { report, cause } = await publishDay(at, 1)
      expect([report, cause]).toMatchObject([
        {
          outcome: 'published',
          reason: null,
          witnesses: [
            { name: 'w1.example', outcome: 'failed', reason: expect.stringMatching(reason) as string },
            { name: 'w2.example', outcome: 'cosigned', reason: null },
          ],
        },
        null,
      ])
      // One request for the earlier checkpoint and one for the new one: no failure is repeated.
      expect(broken.requests).toHaveLength(2)
      expect(at.lines).toEqual(
        [1, 2].map(
          (size) =>
            expect.stringContaining(`the witness w1.example did not cosign tlog/year/${size}: `) as string,
        ),
      )
      expect(await cosignatures(at)).toEqual(['1 0'])
      expect(await cosignatures(at, 2)).toEqual(['1 0', `1 ${DAY_SECONDS}`, `2 ${DAY_SECONDS}`])
      expect(
        (await storedCheckpoints(at.workspace.objects, at.log.signer.key)).map(({ size }) => size),
      ).toEqual([1, 2])
    },
  )

  test('a rehearsal asks no witness', async () => {
    const at = await scene()
    await publishDay(at, 0)
    const before = olds(at.witnesses[0])
    await publish(portsOf(at, 1, 0), { dryRun: true })
    expect(olds(at.witnesses[0])).toEqual(before)
  })
})

describe('a restored machine, whose ledger, objects and record of the key are one entry short', () => {
  /** Publishes two days, the second of which is lost. */
  async function restored(): Promise<Scene> {
    const at = await scene(2)
    await publishDay(at, 0)
    const restore = snapshotOf(at, WHOLE)
    await publishDay(at, 1)
    return { ...at, workspace: restore() }
  }

  const state = async ({ workspace, log }: Scene) => ({
    files: (await workspace.objects.logFiles.list()).map(logFileName).filter((name) => /^\d+$/.test(name)),
    record: (await log.signer.lastSigned()).size,
    rows: (await workspace.ledger.read()).rows.length,
    attempts: await workspace.ledger.attempts(addDays(AS_OF, 1)),
  })

  test('a witness that cosigned the lost entry ends every run before an attempt is counted, and nothing is signed', async () => {
    const at = await restored()
    const before = await state(at)
    expect(before).toEqual({ files: ['1'], record: 1, rows: 1, attempts: [] })
    const [first] = at.witnesses
    if (first) first.behaviour = MISBEHAVIOURS['responds with 403'][0]
    for (const hours of [1, 2, 24 * 3])
      await expect(publishDay(at, 1, hours)).rejects.toMatchObject({
        ...DAMAGED,
        detail: expect.stringMatching(
          /^the witness w2.example reports a second history: it has cosigned size 2, but the ledger has size 1; .*docs\/signed-log.md#a-second-history$/,
        ) as string,
      })
    await expect(sign(at, 1, 3)).rejects.toMatchObject(DAMAGED)
    expect(await state(at)).toEqual(before)
  })

  test('a witness that cosigned more than the newest stored note ends the run when the missed days are signed', async () => {
    const at = await scene(1)
    await publishDay(at, 0)
    const restore = snapshotOf(at, WHOLE)
    for (const day of [1, 2]) await publishDay(at, day)
    const lost = { ...at, workspace: restore() }
    const [witness] = lost.witnesses
    if (!witness) throw new Error('no witness')
    // Unreachable until the missed days are signed.
    const { latest } = witness
    witness.behaviour = ({ response }) => {
      witness.behaviour = null
      response.destroy()
    }
    await expect(publishDay(lost, 3)).rejects.toMatchObject({
      ...DAMAGED,
      detail: expect.stringContaining('it has cosigned size 3, which the ledger does not continue') as string,
    })
    expect(latest).toMatchObject({ size: 3 })
    expect(await lost.workspace.ledger.attempts(addDays(AS_OF, 3))).toEqual([])
  })

  test('a server keeps the old checkpoint', async () => {
    const at = await restored()
    await expect(publishDay(at, 1, 1)).rejects.toMatchObject(DAMAGED)
    const { status, text } = await requestRoute(openApp(at.workspace), '/tlog/year/checkpoint')
    expect([status, text.split('\n')[1]]).toEqual([200, '1'])
  })

  test('a witness that could not be reached at first ends the run after it sees the second history', async () => {
    const at = await restored()
    for (const witness of at.witnesses) witness.behaviour = MISBEHAVIOURS['responds with 500'][0]
    expect((await publishDay(at, 1, 1)).report).toMatchObject({
      outcome: 'published',
      witnesses: [{ outcome: 'failed' }, { outcome: 'failed' }],
    })
    for (const witness of at.witnesses) witness.behaviour = null
    await expect(publishDay(at, 2)).rejects.toMatchObject({
      ...DAMAGED,
      detail: expect.stringContaining(
        'the witness w1.example reports a second history: it has cosigned size 2, which the ledger does not continue (it responded with 409)',
      ) as string,
    })
    expect((await at.workspace.ledger.read()).rows).toHaveLength(2)
    expect(await at.workspace.ledger.attempts(addDays(AS_OF, 2))).toEqual([])
  })

  test('a witness that is reached only after the publication ends the run with the publication and the reason', async () => {
    const at = await restored()
    const [first, second] = at.witnesses
    if (!first || !second) throw new Error('no witnesses')
    second.behaviour = MISBEHAVIOURS['responds with 500'][0]
    // The first request fails; the second one is judged.
    first.behaviour = ({ response }) => {
      first.behaviour = null
      response.destroy()
    }
    const { report, cause } = await publishDay(at, 1, 1)
    expect(report).toMatchObject({
      outcome: 'published',
      reason: expect.stringContaining('it has cosigned size 2, which the ledger does not continue') as string,
      witnesses: [{ outcome: 'failed' }, { outcome: 'failed' }],
    })
    expect(cause).toMatchObject(DAMAGED)
  })
})

test('a witness that refuses a checkpoint which it has cosigned does not end the run', async () => {
  const at = await scene()
  await publishDay(at, 0)
  const [witness] = at.witnesses
  if (!witness) throw new Error('no witness')
  witness.latest = { size: 1, root: new Uint8Array(32) }
  expect((await publishDay(at, 0, 1)).report).toMatchObject({
    outcome: 'already-published',
    witnesses: [{ outcome: 'failed', reason: 'it responded with 409' }],
  })
})

test('a witness that has cosigned nothing reports no second history when it refuses the ledger', async () => {
  const at = await scene()
  await publishDay(at, 0)
  const [witness] = at.witnesses
  if (!witness) throw new Error('no witness')
  witness.behaviour = ({ response }) =>
    olds(witness).at(-1) === 'old 0'
      ? response.writeHead(422).end()
      : response.writeHead(409, { 'content-type': 'text/x.tlog.size' }).end('0\n')
  expect((await publishDay(at, 0, 1)).report).toMatchObject({
    outcome: 'already-published',
    witnesses: [{ outcome: 'failed', reason: 'it responded with 422' }],
  })
})
