import { z } from 'zod'
import pLimit from 'p-limit'
import {
  compareVersions,
  missedDaysSchema,
  modelChangeSchema,
  runSteps,
} from '../../domain/models/changes.ts'
import type { MissedDays, ModelChange, RunStep } from '../../domain/models/changes.ts'
import type { RankedModel, StoredRun } from '../../domain/models/schema.ts'
import { proveRun } from '../../domain/models/stored-run.ts'
import type { Objects } from '../../domain/year/ports.ts'
import { isDamaged } from '../../domain/refusal.ts'
import type { FeedHost } from '../feed/feeds.ts'
import {
  JSON_FEED_TYPE,
  jsonFeedAbout,
  jsonFeedDocument,
  jsonFeedItem,
  permanentId,
  writeJsonFeed,
} from '../feed/formats.ts'
import type { FeedDocument } from '../feed/formats.ts'
import { publishedBody } from '../respond.ts'
import { publishedHeaders, publishedRoute } from '../route.ts'
import type { Route } from '../route.ts'
import { singleFlight } from '../single-flight.ts'
import { CACHE_CONTROL, COMMON, FREE_MODELS_DOCS } from './routes.ts'
import type { FreeModelContract, ServedRecommendation } from './routes.ts'

/** Newest runs that are read; for the changes, the first of them has none before it. */
const RUNS_MAX = 61

const READS_AT_ONCE = 4

/** A stored run without its tasks, which need most of its memory. */
type RunSummary = Pick<
  StoredRun,
  'rankingVersion' | 'updatedAt' | 'rejections' | 'probeMode' | 'untested'
> & {
  /** Rank 1 first. */
  models: readonly Omit<RankedModel, 'evalSummary'>[]
}

/** A run by its version; null if it is missing or damaged. */
interface ReadRun {
  rankingVersion: string
  run: RunSummary | null
}

/** Reads the newest runs up to the served one, in ascending order. */
export type StoredRuns = () => Promise<readonly ReadRun[]>

type RunStore = Pick<Objects['recommendations'], 'run' | 'versions'>

/** Creates a reader that reads and verifies each sound run once: it never changes. */
export function storedRuns(store: RunStore, recommendation: ServedRecommendation): StoredRuns {
  let proved = new Map<string, RunSummary>()
  const limit = pLimit(READS_AT_ONCE)
  return singleFlight(async () => {
    const { run: current, seed } = await recommendation()
    // A run that a crash stored without making it the current one was never served.
    const isServed = (version: string): boolean =>
      seed || compareVersions(version, current.rankingVersion) <= 0
    const stored = await store.versions()
    const versions = stored.filter(isServed).toSorted(compareVersions).slice(-RUNS_MAX)
    const runs = await limit.map(versions, async (rankingVersion) => ({
      rankingVersion,
      run: proved.get(rankingVersion) ?? (await readRun(store, rankingVersion)),
    }))
    proved = new Map(runs.flatMap(({ rankingVersion, run }) => (run ? [[rankingVersion, run]] : [])))
    return runs
  })
}

/** @returns null if the run is missing, damaged, or another one */
async function readRun(store: RunStore, version: string): Promise<RunSummary | null> {
  try {
    const bytes = await store.run(version)
    if (bytes === null) return null
    const { rankingVersion, updatedAt, rejections, probeMode, untested, models } = proveRun(bytes)
    if (rankingVersion !== version) return null
    const withoutTasks = models.map(({ evalSummary: _evalSummary, ...model }) => model)
    return { rankingVersion, updatedAt, rejections, probeMode, untested, models: withoutTasks }
  } catch (error) {
    if (isDamaged(error)) return null
    throw error
  }
}

const ENTRIES_MAX = 200

export interface ModelChangesPorts {
  runs: StoredRuns
  recommendation: ServedRecommendation
  host: () => FeedHost
}

/** Route of the feed of changes of the free models (docs/free-models.md#changes). */
export function modelChangesRoute({ runs, recommendation, host }: ModelChangesPorts): Route {
  const readChanges = async () => {
    const read = await runs()
    const unreadable = read.filter(({ run }) => run === null).map(({ rankingVersion }) => rankingVersion)
    const newest = read.findLast(({ run }) => run !== null)?.run ?? (await recommendation()).run
    const feed = changesFeed({ steps: runSteps(read), unreadable, updatedAt: newest.updatedAt }, host())
    return publishedBody(writeJsonFeed(feed), {
      contentType: `${JSON_FEED_TYPE}; charset=utf-8`,
      cacheControl: CACHE_CONTROL,
    })
  }
  return publishedRoute(modelChangesContract, readChanges)
}

const missedDays = z.array(missedDaysSchema).describe('UTC days without a stored evaluation')
const unreadable = z.array(z.string()).describe('ranking versions whose stored run is missing or damaged')

const FACTS = z.object({ updatedAt: z.iso.datetime(), missedDays, unreadable })

const ENTRY_FACTS = modelChangeSchema.extend({
  rankingVersion: z.string(),
  previousVersion: z.string().describe('ranking version that this one is compared with'),
  missedDays,
  unreadable,
})

type ChangesFeed = FeedDocument<z.infer<typeof FACTS>, z.infer<typeof ENTRY_FACTS>>

/** Steps between runs, in ascending order, with the runs that cannot be compared. */
interface ChangesFacts {
  steps: readonly RunStep[]
  unreadable: readonly string[]
  /** Time of the newest run, ISO-8601. */
  updatedAt: string
}

function changesFeed(
  { steps, unreadable: versions, updatedAt }: ChangesFacts,
  { baseUrl, demo }: FeedHost,
): ChangesFeed {
  return {
    title: `${demo ? 'DEMO: ' : ''}dash: changes of the free models`,
    description:
      'New primaries of the free models, models that went and models that came, each with its reason.',
    homeUrl: `${baseUrl}/models`,
    selfUrl: `${baseUrl}${CHANGES_PATH}`,
    docsUrl: `${baseUrl}${FREE_MODELS_DOCS}`,
    generatedAt: updatedAt,
    elements: [],
    facts: {
      updatedAt,
      missedDays: steps.flatMap((step) => [...step.missedDays]),
      unreadable: [...versions],
    },
    items: steps
      .toReversed()
      .flatMap((step) => step.changes.map((change) => entryOf(step, change, baseUrl)))
      .slice(0, ENTRIES_MAX),
  }
}

/**
 * The changes of one run for a webhook: a JSON Feed with one item for each, and its permanent id, which is the same in
 * every feed of this host.
 */
export function changeMessages(step: RunStep, host: FeedHost): { id: string; body: string }[] {
  const { unreadable: versions, updatedAt } = step
  const feed = changesFeed({ steps: [step], unreadable: versions, updatedAt }, host)
  return feed.items.map((item) => ({ id: item.id, body: writeJsonFeed({ ...feed, items: [item] }) }))
}

function entryOf(step: RunStep, change: ModelChange, baseUrl: string): ChangesFeed['items'][number] {
  const { rankingVersion, previousVersion, updatedAt } = step
  const { kind, model } = change
  const query = kind === 'model_gone' ? '' : `?${String(new URLSearchParams({ model }))}`
  return {
    id: permanentId(`free-model ${kind} ${model} ${rankingVersion} ${updatedAt}`),
    title: titleOf(change),
    link: `${baseUrl}/models${query}`,
    publishedAt: updatedAt,
    author: null,
    discussionUrl: null,
    categories: [kind],
    content: { text: [change.reason, ...gapSentences(step)].join(' ') },
    elements: [],
    facts: {
      ...change,
      rankingVersion,
      previousVersion,
      missedDays: [...step.missedDays],
      unreadable: [...step.unreadable],
    },
  }
}

function titleOf({ kind, model, rank, previousRank, previousPrimary }: ModelChange): string {
  if (kind === 'primary_changed') return `New primary ${model}, in place of ${previousPrimary}`
  return kind === 'model_gone' ? `Gone: ${model} (was rank ${previousRank})` : `New: ${model} (rank ${rank})`
}

function gapSentences({ missedDays: missed, unreadable: versions, previousVersion }: RunStep): string[] {
  return [
    ...(missed.length > 0 ? [`No evaluation is stored for ${missed.map(periodOf).join(', ')}.`] : []),
    ...(versions.length > 0 ? [`Stored but unreadable: ${versions.join(', ')}.`] : []),
    ...(missed.length + versions.length > 0 ? [`Compared with ${previousVersion}.`] : []),
  ]
}

function periodOf({ firstDay, lastDay }: MissedDays): string {
  return firstDay === lastDay ? firstDay : `${firstDay} to ${lastDay}`
}

const CHANGES_PATH = '/api/free-llm/changes.json'

/** The feed of changes (docs/free-models.md#changes). */
export const modelChangesContract: FreeModelContract = {
  ...COMMON,
  path: CHANGES_PATH,
  operationId: 'getFreeModelChangesJson',
  summary: 'Get the changes of the free models as JSON Feed',
  description: [
    `One entry for each new primary, each model that went and each model that came in the newest ${RUNS_MAX} stored runs,`,
    `with its reason; at most ${ENTRIES_MAX} entries, the newest first. Days without an evaluation and unreadable runs are named.`,
    'Without two stored runs the feed is empty.',
  ].join(' '),
  contentType: JSON_FEED_TYPE,
  success: jsonFeedDocument
    .extend({
      _dash: jsonFeedAbout.extend(FACTS.shape),
      items: z.array(jsonFeedItem.extend({ content_text: z.string(), _dash: ENTRY_FACTS })),
    })
    .meta({ id: 'FreeModelChanges' }),
  successDescription: 'A JSON Feed 1.1 document',
  successHeaders: publishedHeaders(CACHE_CONTROL),
}
