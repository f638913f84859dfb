import { z } from 'zod'
import { SourceUnavailable } from '../../domain/feed/live-source.ts'
import type { LiveSource } from '../../domain/ports.ts'
import type { ItemDetails, LiveSourceName, SourceBatch } from '../../domain/feed/live-source.ts'
import { parseSignal } from '../../domain/feed/signal.ts'
import { describeIssues, readAs } from '../../domain/feed/source.ts'
import { firstCodePoints, isHttpUrl } from '../../domain/text.ts'
import { formatInstant, parseInstant } from '../../domain/time.ts'
import type { Day, Instant } from '../../domain/time.ts'
import type { RequestCounts, SourceClient, SourceRequest } from './source-client.ts'

/** Time limit of one source per run, in milliseconds. */
const SOURCE_MS = 300_000

const DESCRIPTION_MAX_LENGTH = 500
const NAME_MAX_LENGTH = 100
const TAGS_MAX = 30

/** Default size limit of a list of items, in bytes. */
export const LIST_MAX_BYTES = 4 * 1024 * 1024

/** An item as a source returns it, before the rules of signals are applied. */
export interface SourceRow {
  sourceId: string
  title: string
  /** The interface that provided the title; the source's name is prepended. */
  channel: string
  /** Kept if it is an absolute http(s) URL. */
  url?: string | null | undefined
  points?: number | null | undefined
  comments?: number | null | undefined
  publishedAt?: Instant | null | undefined
  author?: string | null | undefined
  tags?: readonly (string | null | undefined)[] | null | undefined
  description?: string | null | undefined
}

/** Sends the requests to a source in one run and collects the results into batches. */
export class BatchWriter {
  readonly day: Day
  readonly now: Instant
  readonly #client: SourceClient
  readonly #signal: AbortSignal
  readonly #source: LiveSourceName
  readonly #seen = new Set<string>()
  #batch = emptyBatch()
  #counts: RequestCounts = this.#batch

  constructor(client: SourceClient, source: LiveSourceName, day: Day, signal: AbortSignal) {
    this.#client = client
    this.#source = source
    this.#signal = signal
    this.day = day
    this.now = client.clock()
  }

  /** @throws SourceUnavailable as the client does, and at the source's time limit */
  async fetchJson<T>(request: SourceRequest<T>): Promise<T> {
    if (this.#client.clock() > this.now + SOURCE_MS) {
      const reason = `the source took more than ${SOURCE_MS} ms in total`
      throw new SourceUnavailable(`${request.url}: not requested, ${reason}`)
    }
    return this.#client.fetchJson(request, this.#signal, this.#counts)
  }

  /** Returns the value of `work`, or null after recording the reason the source is unavailable. */
  async attempt<T>(work: () => Promise<T>): Promise<T | null> {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof SourceUnavailable)) throw error
      this.addFailure(error.detail ?? error.code, error.retryAt)
      return null
    }
  }

  /** Reads one list and adds its items; a failure affects only this list. */
  async putList(request: SourceRequest<unknown[]>, row: z.ZodType<SourceRow | null>): Promise<void> {
    await this.attempt(async () => {
      this.putRows(request.url, await this.fetchJson({ conditional: true, ...request }), row)
    })
  }

  addFailure(reason: string, retryAt: Instant | null): void {
    this.#batch.failures.push({ reason, retryAt })
  }

  addBadRow(sourceId: string | null, reason: string): void {
    this.#batch.badRows.push({ sourceId, reason })
  }

  /** Adds an item unless it was added before. Records the reason if it cannot be a signal. */
  put(row: SourceRow): void {
    const { sourceId } = row
    if (this.#seen.has(sourceId)) return
    const parsed = parseSignal(signalRow(this.#source, this.day, row), null)
    if (parsed.kind !== 'signal') {
      this.addBadRow(sourceId, parsed.kind === 'bad' ? parsed.reason : `unknown source ${parsed.source}`)
      return
    }
    this.#seen.add(sourceId)
    this.#batch.signals.push(parsed.signal)
    this.#batch.details.push(toDetails(this.#source, row, this.now))
  }

  /**
   * Adds the items of one list, each parsed separately.
   *
   * @param shape returns null for a valid row that is not collected
   * @throws SourceUnavailable if no row of the list can be parsed
   */
  putRows(list: string, rows: readonly unknown[], shape: z.ZodType<SourceRow | null>): void {
    let readable = 0
    for (const row of rows) {
      const parsed = shape.safeParse(row)
      if (!parsed.success) this.addBadRow(null, `${list}: ${describeIssues(parsed.error)}`)
      else readable += 1
      if (parsed.data) this.put(parsed.data)
    }
    if (readable === 0) throw new SourceUnavailable(`${list}: all ${rows.length} rows miss expected fields`)
  }

  /** Returns everything added since the last call. */
  take(): SourceBatch {
    const batch = this.#batch
    this.#batch = emptyBatch()
    this.#counts = this.#batch
    return batch
  }
}

/** Converts a row to the form of an import. */
function signalRow(
  source: LiveSourceName,
  day: Day,
  { sourceId, title, channel, url, points = null, comments = null, publishedAt = null }: SourceRow,
): Record<string, unknown> {
  return {
    source,
    sourceId,
    day,
    title,
    url: url && isHttpUrl(url) ? url : null,
    points,
    comments,
    publishedAt: publishedAt === null ? null : formatInstant(publishedAt),
    titleProvenance: `${source}:${channel}`,
  }
}

function toDetails(source: LiveSourceName, row: SourceRow, collectedAt: Instant): ItemDetails {
  const tags = (row.tags ?? []).flatMap((tag) => cleanLine(tag, NAME_MAX_LENGTH) ?? [])
  return {
    source,
    sourceId: row.sourceId,
    author: cleanLine(row.author, NAME_MAX_LENGTH),
    tags: [...new Set(tags)].slice(0, TAGS_MAX),
    description: cleanLine(row.description, DESCRIPTION_MAX_LENGTH),
    collectedAt,
  }
}

function emptyBatch(): SourceBatch {
  return { signals: [], details: [], badRows: [], failures: [], requests: 0, notModified: 0, skews: [] }
}

/**
 * Creates a live source that is read in steps, with a batch after each.
 *
 * @param missing names of the missing settings
 */
export function liveSource(
  client: SourceClient,
  source: LiveSourceName,
  missing: readonly string[],
  steps: (batch: BatchWriter) => AsyncIterable<unknown>,
): LiveSource {
  return {
    source,
    missingSettings: missing,
    async *read(day, signal) {
      const batch = new BatchWriter(client, source, day, signal)
      try {
        for await (const _step of steps(batch)) yield batch.take()
      } catch (error) {
        if (!(error instanceof SourceUnavailable)) throw error
        batch.addFailure(error.detail ?? error.code, error.retryAt)
      }
      yield batch.take()
    },
  }
}

/**
 * Cleans one line of text for display: well-formed Unicode, no control or invisible formatting characters, white
 * space collapsed, cut at `maxLength` code points. Returns null if nothing is left.
 */
function cleanLine(text: string | null | undefined, maxLength: number): string | null {
  // Far more than fits into the line; avoids work on a text of megabytes.
  const line = (text ?? '')
    .slice(0, 8 * maxLength)
    .toWellFormed()
    .replaceAll(/[\p{Cc}\s]+/gu, ' ')
    .replaceAll(/(?![\u200c\u200d])\p{Cf}/gu, '')
    .trim()
  const isWhole = firstCodePoints(line, maxLength) === line
  const cut = isWhole ? line : `${firstCodePoints(line, maxLength - 1)}…`
  return cut === '' ? null : cut
}

/**
 * A list as a source sends it; its rows are parsed one by one, so that an invalid row affects only itself. An empty
 * list is a failure: a front page is never empty.
 */
export const listOfRows = z.array(z.unknown()).min(1)

/** A list of names; a value of another form counts as none. */
export const looseNames = z.array(z.string()).nullish().catch(null)

/** An ISO-8601 instant, as epoch milliseconds. */
export const instant = z.string().transform(readAs(parseInstant, 'must be an ISO-8601 instant'))

/** Epoch seconds up to the year 2100, as epoch milliseconds; zero means none and becomes null. */
export const unixSeconds = z
  .number()
  .min(0)
  .max(4_102_444_800)
  .transform((seconds) => (seconds === 0 ? null : Math.floor(seconds) * 1000))

/** A single item as the news source that owns it returns it. */
interface NewsItem {
  id: string
  /** Undefined if the response has no title field. */
  title?: string | null | undefined
  /** Text held by the source itself, as HTML. */
  html?: string | null | undefined
}

/** Access to single items of a news source. */
export interface NewsItems {
  titleProvenance: string
  textProvenance: string
  /** @param base of its API, without a trailing slash */
  request: (base: string, id: string, part: 'title' | 'text') => { url: string; body?: unknown }
  /** The form of a response; null for a missing or deleted item. */
  shape: z.ZodType<NewsItem | null>
}
