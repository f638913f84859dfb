import type { H3 } from 'h3'
import { expect, test } from 'vitest'
import type { StoredRun } from '../../../src/domain/models/schema.ts'
import { sealRun } from '../../../src/domain/models/stored-run.ts'
import { Refusal } from '../../../src/domain/refusal.ts'
import { openApp } from '../../support/api-client.ts'
import { requestRoute } from '../contract-client.ts'
import { RUN_AT, candidate, evaluation, sampleRun } from '../../domain/models/free-models.ts'
import { jsonFeedErrors } from '../feed/live-client.ts'
import { openWorkspace } from '../../support/workspace.ts'
import type { Workspace } from '../../support/workspace.ts'

const PATH = '/api/free-llm/changes.json'
const DAY = 86_400_000

interface Entry {
  id: string
  title: string
  url: string
  content_text: string
  date_published: string
  _dash: Record<string, unknown>
}

interface Feed {
  title: string
  items: Entry[]
  _dash: { updatedAt: string; missedDays: unknown[]; unreadable: string[] }
}

/** The feed, which must be a valid JSON Feed. */
async function feedOf(app: Pick<H3, 'request'>): Promise<Feed> {
  const { text } = await requestRoute(app, PATH)
  expect(jsonFeedErrors(text)).toEqual([])
  return JSON.parse(text) as Feed
}

const GOOD = candidate('maker/good:free')
const WEAK = candidate('other/weak:free', { evaluation: evaluation(RUN_AT, [350, 0, 0]) })
const THIRD = candidate('third/new:free', { evaluation: evaluation(RUN_AT, [0, 0, 0]) })

function runAt(days: number, changes: Parameters<typeof sampleRun>[0]): StoredRun {
  const rankingVersion = `2026-08-${22 + days}.v1`
  return sampleRun({ rankingVersion, now: RUN_AT + days * DAY, rejections: [], ...changes })
}

/** A store with a run of two models, and three days later one in which the primary went and a model came. */
async function changedWorkspace(): Promise<Workspace> {
  const workspace = await openWorkspace()
  const rejections = [{ id: 'maker/good:free', reason: 'not_free' }]
  const runs = [runAt(0, { candidates: [GOOD, WEAK] }), runAt(3, { candidates: [WEAK, THIRD], rejections })]
  for (const run of runs) await workspace.recommendations.put(run.rankingVersion, sealRun(run))
  return workspace
}

test('the feed of changes names a new primary, a model that went and one that came, with reasons and missed days', async () => {
  const { items, _dash: facts } = await feedOf(openApp(await changedWorkspace()))
  const missedDays = [{ firstDay: '2026-08-23', lastDay: '2026-08-24' }]
  const gap = 'No evaluation is stored for 2026-08-23 to 2026-08-24. Compared with 2026-08-22.v1.'
  const reason = 'It is no longer ranked: no `:free` variant.'
  expect(items.map(({ title, url, content_text: text }) => [title, url, text])).toEqual([
    [
      'New primary other/weak:free, in place of maker/good:free',
      'http://dash.test/models?model=other%2Fweak%3Afree',
      expect.stringMatching(
        /^other\/weak:free rose from 2 to 1: .+ maker\/good:free: It is no longer ranked.+2026-08-22\.v1\.$/,
      ),
    ],
    ['Gone: maker/good:free (was rank 1)', 'http://dash.test/models', `${reason} ${gap}`],
    [
      'New: third/new:free (rank 2)',
      'http://dash.test/models?model=third%2Fnew%3Afree',
      `It is new in the catalogue. ${gap}`,
    ],
  ])
  expect(items[1]?._dash).toMatchObject({
    kind: 'model_gone',
    model: 'maker/good:free',
    rank: null,
    previousRank: 1,
    reason,
    missedDays,
  })
  expect(facts).toMatchObject({ updatedAt: '2026-08-25T03:17:01.124Z', missedDays, unreadable: [] })
})

test('entries keep their ids when later runs change the ranking, and the body is revalidated', async () => {
  const workspace = await changedWorkspace()
  const app = openApp(workspace)
  const before = await feedOf(app)
  const etag = (await requestRoute(app, PATH)).headers.get('etag') ?? ''
  const revalidated = async () =>
    (await requestRoute(app, PATH, { headers: { 'if-none-match': etag } })).status
  expect(await revalidated()).toBe(304)
  const later = runAt(4, { candidates: [WEAK] })
  await workspace.recommendations.put(later.rankingVersion, sealRun(later))
  expect(await revalidated()).toBe(200)
  const { items } = await feedOf(app)
  expect(items.slice(1)).toEqual(before.items)
  const reason = 'The catalogue has no readable entry for it any more.'
  const gone = { kind: 'model_gone', model: 'third/new:free', reason }
  expect(items[0]).toMatchObject({ content_text: reason, _dash: gone })
  expect(new Set(items.map(({ id }) => id)).size).toBe(4)
})

test('a damaged, missing or exchanged run is named, and the runs around it are compared', async () => {
  const workspace = await changedWorkspace()
  const { recommendations } = workspace
  const other = sealRun(runAt(1, { candidates: [THIRD] }))
  const bytes: Record<string, Uint8Array | null> = {
    '2026-08-23.v1': Buffer.from('{"sha256":"no"}'),
    '2026-08-23.v2': null,
    '2026-08-24.v1': other,
  }
  const app = openApp({
    ...workspace,
    recommendations: {
      ...recommendations,
      versions: async () => [...Object.keys(bytes), ...(await recommendations.versions())],
      run: async (version) => (version in bytes ? (bytes[version] ?? null) : recommendations.run(version)),
    },
  })
  const { items, _dash: facts } = await feedOf(app)
  expect(facts).toMatchObject({ missedDays: [], unreadable: Object.keys(bytes) })
  expect(items).toHaveLength(3)
  expect(items[2]?.content_text).toBe(
    'It is new in the catalogue. Stored but unreadable: 2026-08-23.v1, 2026-08-23.v2, 2026-08-24.v1. Compared with 2026-08-22.v1.',
  )
})

test('a run that was stored and never made the current one has no entry, and a feed of a demo is marked', async () => {
  const workspace = await changedWorkspace()
  const { recommendations } = workspace
  const first = await recommendations.run('2026-08-22.v1')
  const stores = { ...workspace, recommendations: { ...recommendations, current: async () => first } }
  expect((await feedOf(openApp(stores))).items).toEqual([])
  const { items, title } = await feedOf(openApp(await openWorkspace(), { demo: true }))
  expect([items, title]).toEqual([[], 'DEMO: dash: changes of the free models'])
})

test('the feed is refused while the store cannot be read', async () => {
  const workspace = await changedWorkspace()
  const run = () => Promise.reject(new Refusal('storage_unavailable', 'nothing listens at /secret/path'))
  const app = openApp({ ...workspace, recommendations: { ...workspace.recommendations, run } })
  const { status, text, headers } = await requestRoute(app, PATH)
  expect([status, headers.get('cache-control')]).toEqual([500, 'no-store'])
  expect(JSON.parse(text)).toMatchObject({ error: 'internal_error' })
  expect(text).not.toContain('secret')
})
