import { describe, expect, test } from 'vitest'
import type { Grounding } from '../../../src/domain/agent/shown-data.ts'
import { sealRun } from '../../../src/domain/models/stored-run.ts'
import type { LiveSort } from '../../../src/domain/feed/live-sort.ts'
import { readGrounding } from '../../../src/server/agent/grounding.ts'
import type { AgentSources } from '../../../src/server/agent/tools.ts'
import { formatInstant } from '../../../src/domain/time.ts'
import { settle, settledWorkspace, sourcesOf } from './agent-reads.ts'
import { sampleRun } from '../../domain/models/free-models.ts'
import { signal as signalOf } from '../../support/signals.ts'
import { AS_OF, LONG_MS, openWorkspace, RUN_AT, sampleSignals } from '../../support/workspace.ts'
import type { Workspace } from '../../support/workspace.ts'

const NOW = RUN_AT + 3_600_000
const never = new AbortController().signal

const workspaceWith = (signals = sampleSignals()): Promise<Workspace> => settledWorkspace(signals, NOW)

async function ground(
  sources: AgentSources,
  itemKey: string | null = null,
  sort: LiveSort = 'trending',
): Promise<Grounding & { json: Record<string, unknown> }> {
  const fail = (error: unknown): never => {
    throw error
  }
  const grounding = await readGrounding({ itemKey, sort }, sources, never, fail, LONG_MS)
  return { ...grounding, json: JSON.parse(grounding.data) as Record<string, unknown> }
}

describe('a turn on the site', () => {
  test('a turn on the site starts from the newest snapshot in its sort, and has another revision after any stored change', async () => {
    const workspace = await workspaceWith()
    const sources = sourcesOf(workspace, NOW)
    const { json, ...grounding } = await ground(sources, null, 'week')
    expect(grounding).toMatchObject({ scope: 'site', day: '2026-03-02' })
    expect(grounding.revision).toMatch(/^[0-9a-f]{64}$/)
    expect(json).toMatchObject({
      untrusted: true,
      about: 'the whole site',
      sort: 'week',
      hackerNews: [{ rank: 1, key: 'hn-hn3' }, {}, {}],
    })
    expect(await ground(sources, null, 'week')).toMatchObject(grounding)
    expect((await ground(sources, null, 'month')).revision).not.toBe(grounding.revision)
    await workspace.feed.importSignals([signalOf({ sourceId: 'new', day: AS_OF })])
    const { revision } = await ground(sources, null, 'week')
    expect(revision).toMatch(/^[0-9a-f]{64}$/)
    expect(revision).not.toBe(grounding.revision)
  })

  test('a turn on the site says that there is no snapshot', async () => {
    const sources = sourcesOf(await openWorkspace(), NOW)
    const { json, scope, revision } = await ground(sources)
    expect(scope).toBe('site')
    expect(json['note']).toContain('No snapshot')
    expect(revision).not.toBeNull()
  })
})

describe.each([null, 'hn-hn3'])('the free model of a turn about %s', (itemKey) => {
  const groundWith = async (bytes: Uint8Array | null) => {
    const faults: unknown[] = []
    const workspace = await workspaceWith()
    const recommendations = { ...workspace.recommendations, current: () => Promise.resolve(bytes) }
    const sources = sourcesOf({ ...workspace, recommendations }, NOW)
    const request = { itemKey, sort: 'trending' } as const
    const onFault = (error: unknown): void => void faults.push(error)
    const { scope, data } = await readGrounding(request, sources, never, onFault, LONG_MS)
    expect(scope).toBe(itemKey === null ? 'site' : 'item')
    return { freeModel: (JSON.parse(data) as Record<string, unknown>)['freeModel'], faults }
  }

  test('the data block names the recommended model, what was measured of it, and whether that is stale', async () => {
    const run = { ...sampleRun(), updatedAt: formatInstant(NOW) }
    const { name = '', id = '', evalSummary } = run.models[0] ?? {}
    const tasks = { passed: 3, total: 3, testedAt: evalSummary?.updatedAt }
    const measured = { health: 'passed', latencyMs: 900, toolUse: 'proven', tasks }
    expect(await groundWith(sealRun(run))).toEqual({
      freeModel: expect.objectContaining({ page: '/models', name, id, stale: false, measured }),
      faults: [],
    })
    const untested = { measured: { ...measured, health: null, latencyMs: null } }
    expect(await groundWith(sealRun({ ...run, untested: [id] }))).toMatchObject({ freeModel: untested })
  })

  test('the data block says when no model was measured or the recommendation is damaged', async () => {
    expect(await groundWith(null)).toEqual({
      freeModel: { note: 'No recommendation is stored: no free model was measured.' },
      faults: [],
    })
    expect(await groundWith(Buffer.from('{}'))).toEqual({
      freeModel: { note: 'The recommendation could not be read just now.' },
      faults: [expect.any(Error)],
    })
  })
})

describe('a turn on an item', () => {
  const saveText = ({ feed }: Workspace, text: string) =>
    feed.saveArticles([{ source: 'hn', sourceId: 'hn3', text, provenance: 'test:test', fetchedAt: 1_000 }])

  test('a turn on an item starts from the item, its trend and the beginning of its text', async () => {
    const workspace = await workspaceWith()
    const text = 'Первое предложение. '.repeat(1_000)
    await saveText(workspace, text)
    await settle(workspace, NOW + 1)
    const sources = sourcesOf(workspace, NOW)
    const groups: string[] = []
    const by: typeof sources.search.by = (caller) => (groups.push(caller.group), sources.search.by(caller))
    const { json, scope, data } = await ground({ ...sources, search: { by } }, 'hn-hn3')
    expect(groups).toEqual(['chat'])
    expect(scope).toBe('item')
    expect(json).toMatchObject({
      untrusted: true,
      item: {
        key: 'hn-hn3',
        title: 'hn title 3',
        link: 'https://example.org/hn/3',
        points: 30,
        discussion: 'https://news.ycombinator.com/item?id=hn3',
      },
      trend: { days: [{ day: AS_OF, points: 30, rank: 1 }] },
      textIsWhole: false,
    })
    expect(text.startsWith(String(json['text']))).toBe(true)
    expect(Buffer.byteLength(data)).toBeGreaterThan(6_000)
  })

  test('a turn on an item has another revision after a change of the item or its text', async () => {
    const workspace = await workspaceWith()
    const sources = sourcesOf(workspace, NOW)
    const revisions = [(await ground(sources, 'hn-hn3')).revision]
    const changes = [
      () => workspace.feed.importSignals([{ ...sampleSignals()[2]!, points: 31 }]),
      () => saveText(workspace, 'one'),
      () => saveText(workspace, 'two'),
    ]
    for (const [index, change] of changes.entries()) {
      await change()
      await settle(workspace, NOW + index + 1)
      revisions.push((await ground(sources, 'hn-hn3')).revision)
    }
    expect(revisions).not.toContain(null)
    expect(new Set(revisions).size).toBe(4)
  })

  test.each(['hn-none', 'nonsense', 'hn-'])(
    'a turn on an item falls back to the site for the key %j',
    async (key) => {
      const sources = sourcesOf(await workspaceWith(), NOW)
      const grounding = await ground(sources, key)
      expect(grounding.scope).toBe('site')
      expect(grounding).toEqual(await ground(sources))
    },
  )
})

test('unreadable data is stated to the model, logged, and never cached; an abort is no failure', async () => {
  const sources = sourcesOf(await workspaceWith(), NOW)
  const faults: unknown[] = []
  const broken = { ...sources, feed: () => Promise.reject(new Error('/secret/path')) }
  const request = { itemKey: null, sort: 'day' } as const
  const onFault = (error: unknown): void => void faults.push(error)
  const grounding = await readGrounding(request, broken, never, onFault)
  expect(grounding).toMatchObject({ scope: 'site', revision: null })
  expect(grounding.data).toContain('could not be read')
  expect(grounding.data).not.toContain('secret')
  expect(faults).toHaveLength(1)
  const aborted = AbortSignal.abort(new Error('left'))
  await expect(readGrounding(request, sources, aborted, onFault)).rejects.toThrow('left')
  expect(faults).toHaveLength(1)
})
