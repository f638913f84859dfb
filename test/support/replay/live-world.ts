import type { SourceMemory } from '../../../src/adapters/sources/source-client.ts'
import { onTestFinished } from 'vitest'
import { liveSources } from '../../../src/adapters/sources/live-sources.ts'
import type { LiveSourceSettings } from '../../../src/adapters/sources/live-sources.ts'
import type { LiveSourceName, SourceBatch } from '../../../src/domain/feed/live-source.ts'
import type { Clock, LiveSource } from '../../../src/domain/ports.ts'
import type { Day, Instant } from '../../../src/domain/time.ts'
import { sourceClient } from '../../adapters/sources/client.ts'
import { startReplay } from './replay-server.ts'
import type { Replay } from './replay-server.ts'
import { TOKENS } from './responses.ts'
import type { Replayed } from './responses.ts'

/** When the tests collect. */
export const NOW: Instant = Date.UTC(2026, 10, 21, 13, 30)
export const DAY: Day = '2026-11-21'

type SourceTokens = LiveSourceSettings['sourceTokens']

const ALL_TOKENS: SourceTokens = {
  gitHub: TOKENS.GITHUB_TOKEN,
  huggingFace: TOKENS.HF_TOKEN,
  replicate: TOKENS.REPLICATE_API_TOKEN,
  redditClientId: TOKENS.REDDIT_CLIENT_ID,
  redditClientSecret: TOKENS.REDDIT_CLIENT_SECRET,
}

/** The replayed sources, closed when the test ends. */
export async function replay(): Promise<Replay> {
  const started = await startReplay()
  onTestFinished(() => started.close())
  return started
}

/** Every live source, reading the replayed ones, whose clocks are set to that of the client. */
export function sourcesOf(
  { urls, setClock }: Replay,
  changes: { memory?: SourceMemory; tokens?: Partial<SourceTokens>; clock?: Clock } = {},
): LiveSource[] {
  const { memory = null, clock = () => NOW } = changes
  const client = sourceClient({ clock, memory })
  for (const source of Object.keys(urls) as Replayed[]) setClock(source, clock() - Date.now())
  return liveSources(client, {
    sourceUrls: {
      hn: urls.hn,
      lobsters: urls.lobsters,
      lesswrong: urls.lesswrong,
      'hype:github': urls.github,
      'hype:huggingface': urls.huggingface,
      'hype:replicate': urls.replicate,
      'hype:reddit': urls.reddit,
    },
    hackerNewsSearchUrl: urls['hn-search'],
    sourceTokens: { ...ALL_TOKENS, ...changes.tokens },
  })
}

/** Everything one source gives, as one batch. */
export async function readWhole(
  world: Replay,
  name: LiveSourceName,
  tokens: Partial<SourceTokens> = {},
): Promise<SourceBatch> {
  const source = sourcesOf(world, { tokens }).find(({ source: each }) => each === name)
  if (!source) throw new Error(`there is no source ${name}`)
  const batches: SourceBatch[] = []
  for await (const batch of source.read(DAY, new AbortController().signal)) batches.push(batch)
  const sum = (key: 'requests' | 'notModified'): number =>
    batches.reduce((total, batch) => total + batch[key], 0)
  return {
    signals: batches.flatMap(({ signals }) => signals),
    details: batches.flatMap(({ details }) => details),
    badRows: batches.flatMap(({ badRows }) => badRows),
    failures: batches.flatMap(({ failures }) => failures),
    requests: sum('requests'),
    notModified: sum('notModified'),
    skews: batches.flatMap(({ skews }) => skews),
  }
}
