import { z } from 'zod'
import { SourceUnavailable } from '../../domain/feed/live-source.ts'
import type { LiveSource } from '../../domain/ports.ts'
import type { ItemDetails, LiveSourceName, SourceBatch } from '../../domain/feed/live-source.ts'
import { parseSignal } from '../../domain/feed/signal.ts'
import { describeIssues } from '../../domain/feed/source.ts'
import { isHttpUrl } from '../../domain/address.ts'
import { formatInstant, parseInstant } from '../../domain/time.ts'
import type { Day, Instant } from '../../domain/time.ts'
import { UnexpectedResponse, OTHER_SHAPE } from './source-client.ts'
import type { RequestCounts, SourceClient, SourceRequest } from './source-client.ts'

/** Time one source may take in all. */
const SOURCE_MS = 300_000

const DESCRIPTION_MAX_LENGTH = 500
const NAME_MAX_LENGTH = 100
const TAGS_MAX = 30

/** The most a list of items may have, in bytes, unless it says otherwise. */
export const LIST_MAX_BYTES = 4 * 1024 * 1024

/** An item as a source shows it, before the rules of signals are applied to it. */
export interface SourceRow {
  sourceId: string
  title: string
  /** How the source vouches for the title; the source's own name is put before it. */
  channel: string
  /** Kept when it is an absolute http(s) URL. */
  url?: string | null | undefined
  points?: number | null | undefined
  comments?: number | null | undefined
  publishedAt?: Instant | null | undefined
  author?: string | null | undefined
  tags?: readonly (string | null | undefined)[] | null | undefined
  description?: string | null | undefined
}

/** A request of a source whose response has a zod shape. */
type ShapedRequest<T> = Omit<SourceRequest<T>, 'read'> & { shape: z.ZodType<T> }

/** Asks a source for one run, and collects what it gives into batches. */
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

  /** @throws SourceUnavailable as the client does, and when the source has used up its time */
  async ask<T>({ shape, ...request }: ShapedRequest<T>): Promise<T> {
    if (this.#client.clock() > this.now + SOURCE_MS) {
      const why = `the source took more than ${SOURCE_MS} ms in all`
      throw new SourceUnavailable(`${request.url}: not asked, ${why}`)
    }
    const read = (json: unknown): T => {
      const parsed = shape.safeParse(json)
      if (parsed.success) return parsed.data
      throw new UnexpectedResponse(`${OTHER_SHAPE} (${describeIssues(parsed.error).slice(0, 300)})`)
    }
    return this.#client.ask({ ...request, read }, this.#signal, this.#counts)
  }

  /** The value of `get`, or null after recording why the source could not give it. */
  async attempt<T>(get: () => Promise<T>): Promise<T | null> {
    try {
      return await get()
    } catch (error) {
      if (!(error instanceof SourceUnavailable)) throw error
      this.fail(error.detail ?? error.code, error.retryAt)
      return null
    }
  }

  /** Reads one list and adds its items; a failure costs this list alone. */
  async putList(request: ShapedRequest<unknown[]>, row: z.ZodType<SourceRow | null>): Promise<void> {
    await this.attempt(async () => {
      this.putRows(request.url, await this.ask({ conditional: true, ...request }), row)
    })
  }

  fail(reason: string, retryAt: Instant | null): void {
    this.#batch.failures.push({ reason, retryAt })
  }

  bad(sourceId: string | null, reason: string): void {
    this.#batch.badRows.push({ sourceId, reason })
  }

  /** Adds an item unless it was added before, or records why it cannot be a signal. */
  put(row: SourceRow): void {
    const { sourceId } = row
    if (this.#seen.has(sourceId)) return
    const parsed = parseSignal(signalRow(this.#source, this.day, row), null)
    if (parsed.kind !== 'signal') {
      this.bad(sourceId, parsed.kind === 'bad' ? parsed.reason : `unknown source ${parsed.source}`)
      return
    }
    this.#seen.add(sourceId)
    this.#batch.signals.push(parsed.signal)
    this.#batch.details.push(detailsOf(this.#source, row, this.now))
  }

  /**
   * Adds the items of one list, each read by itself.
   *
   * @param shape gives null for a row that is no item of ours, and not wrong either
   * @throws SourceUnavailable when not one row of the list can be read
   */
  putRows(list: string, rows: readonly unknown[], shape: z.ZodType<SourceRow | null>): void {
    let readable = 0
    for (const row of rows) {
      const parsed = shape.safeParse(row)
      if (!parsed.success) this.bad(null, `${list}: ${describeIssues(parsed.error)}`)
      else readable += 1
      if (parsed.data) this.put(parsed.data)
    }
    if (readable === 0)
      throw new SourceUnavailable(`${list}: not one of its ${rows.length} rows has the shape expected`)
  }

  /** Everything added since the last call. */
  take(): SourceBatch {
    const batch = this.#batch
    this.#batch = emptyBatch()
    this.#counts = this.#batch
    return batch
  }
}

/** A row as an import would have it. */
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

function detailsOf(source: LiveSourceName, row: SourceRow, collectedAt: Instant): ItemDetails {
  const names = (row.tags ?? []).flatMap((tag) => cleanLine(tag, NAME_MAX_LENGTH) ?? [])
  return {
    source,
    sourceId: row.sourceId,
    author: cleanLine(row.author, NAME_MAX_LENGTH),
    tags: [...new Set(names)].slice(0, TAGS_MAX),
    description: cleanLine(row.description, DESCRIPTION_MAX_LENGTH),
    collectedAt,
  }
}

function emptyBatch(): SourceBatch {
  return { signals: [], details: [], badRows: [], failures: [], requests: 0, notModified: 0 }
}

/**
 * A live source that is read in steps, with a batch after each.
 *
 * @param missing settings that are missing
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
        batch.fail(error.detail ?? error.code, error.retryAt)
      }
      yield batch.take()
    },
  }
}

/**
 * One line of text for display: well-formed Unicode, no control or invisible formatting characters, white space
 * collapsed, cut at `maxLength` code points. null when nothing is left.
 */
function cleanLine(text: string | null | undefined, maxLength: number): string | null {
  // Far more than can come into the line; a text of megabytes is not worked on.
  const line = (text ?? '')
    .slice(0, 8 * maxLength)
    .toWellFormed()
    .replaceAll(/[\p{Cc}\s]+/gu, ' ')
    .replaceAll(/(?![\u200c\u200d])\p{Cf}/gu, '')
    .trim()
  const characters = Array.from(line)
  const cut = characters.length > maxLength ? `${characters.slice(0, maxLength - 1).join('')}…` : line
  return cut === '' ? null : cut
}

/** A list as a source sends it: its rows are looked at one by one, so that a wrong one costs only itself. */
export const listOfRows = z.array(z.unknown()).min(1)

/** Names that may have any shape, and are none then. */
export const looseNames = z.array(z.string()).nullish().catch(null)

/** An ISO-8601 instant, as epoch milliseconds. */
export const instant = z.string().transform((text, context) => {
  const at = parseInstant(text)
  if (at !== null) return at
  context.addIssue({ code: 'custom', message: 'must be an ISO-8601 instant' })
  return z.NEVER
})

/** Epoch seconds, up to the year 2100, as epoch milliseconds; null for zero, which stands for none. */
export const unixSeconds = z
  .number()
  .min(0)
  .max(4_102_444_800)
  .transform((seconds) => (seconds === 0 ? null : Math.floor(seconds) * 1000))

/** A single item as the news source that owns it shows it. */
export interface NewsItem {
  id: string
  /** undefined where the response has none at all. */
  title?: string | null | undefined
  /** The text the source itself holds, as HTML. */
  html?: string | null | undefined
}

/** How a news source shows single items. */
export interface NewsItems {
  titleProvenance: string
  textProvenance: string
  /** @param base of its API, without a trailing slash */
  request: (base: string, id: string, part: 'title' | 'text') => { url: string; body?: unknown }
  /** null for an item that is not there or was deleted; throws for another shape. */
  read: (json: unknown) => NewsItem | null
}
