import { z } from 'zod'
import { SourceUnavailable } from '../../domain/feed/live-source.ts'
import type { LiveSource } from '../../domain/ports.ts'
import type {
  ItemDetails,
  LiveSourceName,
  SourceBatch,
  SourceFailure,
} from '../../domain/feed/live-source.ts'
import { parseSignal } from '../../domain/feed/signal.ts'
import { isHttpUrl } from '../../domain/address.ts'
import { formatInstant, parseInstant } from '../../domain/time.ts'
import type { Day, Instant } from '../../domain/time.ts'
import { AnswerProblem } from './source-client.ts'
import type { RequestCounts, SourceClient, SourceRequest } from './source-client.ts'

/** Time one source may take in all. */
const SOURCE_MS = 300_000

const DESCRIPTION_MAX_LENGTH = 500
const NAME_MAX_LENGTH = 100
const TAGS_MAX = 30

/** An item as a source shows it, before the rules of signals are applied to it. */
export interface SourceRow {
  sourceId: string
  title: string
  /** Kept when it is an absolute http(s) URL. */
  url: string | null
  points: number | null
  comments: number | null
  publishedAt: Instant | null
  /** How the source vouches for the title; the source's own name is put before it. */
  channel: string
  author: string | null
  tags: readonly string[]
  description: string | null
}

/** Where an adapter asks its questions and puts down what it finds. */
export class Desk {
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
  async ask<T>(request: SourceRequest<T>): Promise<T> {
    if (this.#client.clock() > this.now + SOURCE_MS) {
      throw new SourceUnavailable(
        `${request.url}: not asked, the source took more than ${SOURCE_MS} ms in all`,
      )
    }
    return this.#client.ask(request, this.#signal, this.#counts)
  }

  /** What `get` gives, or null after putting down why the source could not give it. */
  async attempt<T>(get: () => Promise<T>): Promise<T | null> {
    try {
      return await get()
    } catch (error) {
      if (!(error instanceof SourceUnavailable)) throw error
      this.fail(failureOf(error))
      return null
    }
  }

  fail(failure: SourceFailure): void {
    this.#batch.failures.push(failure)
  }

  bad(sourceId: string | null, reason: string): void {
    this.#batch.badRows.push({ sourceId, reason })
  }

  /** True when an item with this id was put down before. */
  has(sourceId: string): boolean {
    return this.#seen.has(sourceId)
  }

  /** Puts an item down unless it was before, or tells why it cannot be a signal. */
  put(row: SourceRow): void {
    if (this.has(row.sourceId)) return
    const { sourceId, title, url, points, comments, publishedAt, channel } = row
    const source = this.#source
    const parsed = parseSignal(
      {
        source,
        sourceId,
        day: this.day,
        title,
        url: url !== null && isHttpUrl(url) ? url : null,
        points,
        comments,
        publishedAt: publishedAt === null ? null : formatInstant(publishedAt),
        titleProvenance: `${source}:${channel}`,
      },
      null,
    )
    if (parsed.kind !== 'signal') {
      this.bad(sourceId, parsed.kind === 'bad' ? parsed.reason : `unknown source ${parsed.source}`)
      return
    }
    this.#seen.add(sourceId)
    this.#batch.signals.push(parsed.signal)
    this.#batch.details.push(this.#details(row))
  }

  /**
   * Reads the rows of one list, each by itself.
   *
   * @param toRow null for a row that is no item of ours, and not wrong either
   * @throws SourceUnavailable when not one row of the list can be read
   */
  putRows<Row>(
    what: string,
    rows: readonly unknown[],
    shape: z.ZodType<Row>,
    toRow: (row: Row) => SourceRow | null,
  ): void {
    let readable = 0
    for (const row of rows) {
      const parsed = shape.safeParse(row)
      if (!parsed.success) {
        this.bad(null, `${what}: ${describeIssues(parsed.error)}`)
        continue
      }
      readable += 1
      const item = toRow(parsed.data)
      if (item) this.put(item)
    }
    if (readable === 0) {
      throw new SourceUnavailable(`${what}: not one of its ${rows.length} rows has the shape expected`)
    }
  }

  /** What was put down since the last time. */
  take(): SourceBatch {
    const batch = this.#batch
    this.#batch = emptyBatch()
    this.#counts = this.#batch
    return batch
  }

  #details({ sourceId, author, tags, description }: SourceRow): ItemDetails {
    const names = tags.flatMap((tag) => cleanLine(tag, NAME_MAX_LENGTH) ?? [])
    return {
      source: this.#source,
      sourceId,
      author: author === null ? null : cleanLine(author, NAME_MAX_LENGTH),
      tags: [...new Set(names)].slice(0, TAGS_MAX),
      description: description === null ? null : cleanLine(description, DESCRIPTION_MAX_LENGTH),
      collectedAt: this.now,
    }
  }
}

function failureOf({ detail, code, retryAt }: SourceUnavailable): SourceFailure {
  return { reason: detail ?? code, retryAt }
}

function emptyBatch(): SourceBatch {
  return { signals: [], details: [], badRows: [], failures: [], requests: 0, notModified: 0 }
}

/**
 * A live source from an adapter's way to read it.
 *
 * @param steps each asks for something of its own: one that fails costs only what it asked for
 */
export function liveSource(
  client: SourceClient,
  source: LiveSourceName,
  lacks: readonly string[],
  steps: (desk: Desk) => AsyncIterable<void>,
): LiveSource {
  return {
    source,
    lacks,
    async *read(day, signal) {
      const desk = new Desk(client, source, day, signal)
      try {
        for await (const _step of steps(desk)) yield desk.take()
      } catch (error) {
        if (!(error instanceof SourceUnavailable)) throw error
        desk.fail(failureOf(error))
      }
      yield desk.take()
    },
  }
}

/**
 * One line of text for display: well-formed Unicode, no control or invisible formatting characters, white space
 * collapsed, cut at `maxLength` code points. null when nothing is left.
 */
function cleanLine(text: string, maxLength: number): string | null {
  // Far more than can come into the line; a text of megabytes is not worked on.
  const line = text
    .slice(0, 8 * maxLength)
    .toWellFormed()
    .replaceAll(/[\p{Cc}\s]+/gu, ' ')
    .replaceAll(/(?![\u200c\u200d])\p{Cf}/gu, '')
    .trim()
  const characters = Array.from(line)
  const cut = characters.length > maxLength ? `${characters.slice(0, maxLength - 1).join('')}…` : line
  return cut === '' ? null : cut
}

/** A list as a source answers it: its rows are looked at one by one, so that a wrong one costs only itself. */
export const listOfRows = z.array(z.unknown()).min(1)

/** An ISO-8601 instant, as epoch milliseconds. */
export const instant = z.string().transform((text, context) => {
  const at = parseInstant(text)
  if (at !== null) return at
  context.addIssue({ code: 'custom', message: 'must be an ISO-8601 instant' })
  return z.NEVER
})

/** Epoch seconds, up to the year 2100. */
export const unixSeconds = z.number().min(0).max(4_102_444_800)

/** What is wrong with a value, in one line. */
export function describeIssues(error: z.ZodError): string {
  return error.issues.map(({ path, message }) => `${path.join('.') || 'row'}: ${message}`).join('; ')
}

/** What a request reads its answer by, from a zod shape. */
export function shapeReader<T>(shape: z.ZodType<T>): (answer: unknown) => T {
  return (answer) => {
    const parsed = shape.safeParse(answer)
    if (parsed.success) return parsed.data
    const why = describeIssues(parsed.error).slice(0, 300)
    throw new AnswerProblem(`its answer has another shape than expected (${why})`)
  }
}

/** What identifies a story wherever Lobsters answers with one. */
export const lobstersStory = z.object({ short_id: z.string(), title: z.string() })
