import { describe, expect, test } from 'vitest'
import { Refusal } from '../../src/domain/refusal.ts'
import type { Finding, FindingCode, DamageSample, Mutation } from '../../src/domain/year/finding.ts'
import { selfTest } from '../../src/jobs/self-test.ts'
import type { SelfTestAudit, SelfTestPorts } from '../../src/jobs/self-test.ts'

const KEPT_HEAD = { seq: 9, leaf: 'a'.repeat(64), time: 1, path: 'kept' }

function finding(code: FindingCode): Finding {
  return { code, publicationId: null, path: null, expected: null, actual: null }
}

function mutation(name: string, changes: Partial<Mutation> = {}): Mutation {
  return {
    name,
    expects: ['row_tampered'],
    sound: false,
    needsKeptHead: false,
    apply: () => Promise.resolve(),
    ...changes,
  }
}

/** An audit that says of each folder what the scene scripts for it; the sample is `clean` until it is damaged. */
interface Scene {
  ports: SelfTestPorts
  asked: { folder: string; kept: boolean }[]
  progress: number[]
  removed: () => boolean
}

function scene(
  mutations: readonly Mutation[],
  verdicts: Record<string, Partial<SelfTestAudit['report']> & { cause?: unknown }>,
): Scene {
  let damaged = ''
  let removed = false
  const asked: Scene['asked'] = []
  const progress: number[] = []
  const sample: DamageSample = {
    keptHead: KEPT_HEAD,
    mutations: mutations.map((each) => ({
      ...each,
      async apply(folder) {
        damaged = each.name
        await each.apply(folder)
      },
    })),
    async restore() {
      damaged = 'clean'
      return 'folder'
    },
    async remove() {
      removed = true
    },
  }
  return {
    asked,
    progress,
    removed: () => removed,
    ports: {
      makeSample: () => Promise.resolve(sample),
      async audit(_folder, expectedHead) {
        asked.push({ folder: damaged, kept: expectedHead === KEPT_HEAD })
        const { cause = null, ...report } = verdicts[damaged] ?? {}
        return { report: { ok: true, findings: [], ...report }, cause }
      },
      onProgress: ({ mutations: done }) => progress.push(done),
    },
  }
}

const DAMAGED = { ok: false, findings: [finding('row_tampered')] }

const never = (): AbortSignal => new AbortController().signal

describe('the self-test of the audit', () => {
  test('the self-test counts mutations that are reported under an expected code', async () => {
    const { ports, progress, removed } = scene([mutation('one'), mutation('two')], {
      one: DAMAGED,
      two: DAMAGED,
    })
    expect(await selfTest(ports, never())).toEqual({ mutations: 2, detected: 2, missed: [] })
    expect(progress).toEqual([1, 2])
    expect(removed()).toBe(true)
  })

  test.each([
    ['nothing', {}, []],
    ['another code', { ok: false, findings: [finding('orphan_object')] }, ['orphan_object']],
    [
      'the code, but finds the archive sound',
      { ok: true, findings: [finding('row_tampered')] },
      ['row_tampered'],
    ],
    ['a fault', { ok: false, cause: new Error('broken') }, ['fault: broken']],
    [
      'a store that cannot be reached',
      { ok: false, cause: new Refusal('storage_unavailable', 'gone') },
      ['storage_unavailable'],
    ],
  ])(
    'the self-test names a mutation as missed when the audit reports %s',
    async (_what, verdict, reported) => {
      const { ports } = scene([mutation('one'), mutation('two')], { one: verdict, two: DAMAGED })
      expect(await selfTest(ports, never())).toEqual({
        mutations: 2,
        detected: 1,
        missed: [{ name: 'one', reported }],
      })
    },
  )

  test('the self-test counts a note as a detection only while the archive is found sound', async () => {
    const note = mutation('note', { expects: ['orphan_object'], sound: true })
    const sound = scene([note], { note: { ok: true, findings: [finding('orphan_object')] } })
    expect((await selfTest(sound.ports, never())).detected).toBe(1)
    const unsound = scene([note], { note: { ok: false, findings: [finding('orphan_object')] } })
    expect((await selfTest(unsound.ports, never())).detected).toBe(0)
  })

  test('the self-test passes the kept head only where nothing else can detect the mutation', async () => {
    const needsIt = mutation('rolled back', { needsKeptHead: true })
    const { ports, asked } = scene([mutation('one'), needsIt], {})
    await selfTest(ports, never())
    expect(asked).toEqual([
      { folder: 'clean', kept: true },
      { folder: 'one', kept: false },
      { folder: 'rolled back', kept: true },
    ])
  })

  test('the self-test gives no result when the audit reports the undamaged sample', async () => {
    const { ports, removed } = scene([mutation('one')], { clean: DAMAGED, one: DAMAGED })
    await expect(selfTest(ports, never())).rejects.toThrow(
      'sample of the self-test has findings: row_tampered',
    )
    expect(removed()).toBe(true)
  })

  test('an aborted self-test ends between two mutations and leaves nothing behind', async () => {
    const stopping = new AbortController()
    const stop = mutation('one', { apply: async () => stopping.abort(new Error('told to stop')) })
    const { ports, asked, removed } = scene([stop, mutation('two')], { one: DAMAGED })
    await expect(selfTest(ports, stopping.signal)).rejects.toThrow('told to stop')
    expect(asked.map(({ folder }) => folder)).toEqual(['clean', 'one'])
    expect(removed()).toBe(true)
  })

  test('the self-test leaves nothing behind when a mutation cannot be made', async () => {
    const broken = mutation('one', { apply: () => Promise.reject(new Error('no room')) })
    const { ports, removed } = scene([broken], {})
    await expect(selfTest(ports, never())).rejects.toThrow('no room')
    expect(removed()).toBe(true)
  })
})
