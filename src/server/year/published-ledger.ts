import { formatHead } from '../../domain/year/head-file.ts'
import type { ProvedLedger } from '../../domain/year/chain.ts'
import { historyIndex } from '../../domain/year/history-index.ts'
import type { Head, LedgerContents } from '../../domain/year/ledger.ts'
import { leafText, legacyText } from '../../domain/year/ledger-text.ts'
import { published } from '../published.ts'
import type { Published } from '../published.ts'

/** What a host publishes of its proved ledgers, for anyone to prove again (docs/auditing.md). */
export interface PublishedLedger {
  /** One line an entry, each the text its leaf is the digest of. */
  entries: () => Published
  /** The text the seal is the digest of. */
  legacy: () => Published
  /** The newest head; null when there is none. */
  head: () => Published | null
  /** Every publication and gap of both ledgers. */
  index: () => Published
}

const JSON_TYPE = 'application/json; charset=utf-8'
const NDJSON_TYPE = 'application/x-ndjson; charset=utf-8'

/** Each text is made when it is first asked for, and kept: ten years of entries are two megabytes. */
export function publishedLedger(
  proved: ProvedLedger,
  { rows, legacy }: LedgerContents,
  head: Head | null,
): PublishedLedger {
  // While an import has begun and not ended, a head is there before the entry it pins.
  const pinned = head !== null && head.seq <= rows.length ? head : null
  return {
    entries: once(() => publishedText(rows.map((row) => `${leafText(row)}\n`).join(''), NDJSON_TYPE)),
    legacy: once(() => publishedText(legacyText(legacy), NDJSON_TYPE)),
    head: () => pinned && publishedText(formatHead(pinned), JSON_TYPE),
    index: once(() => publishedText(JSON.stringify(historyIndex(proved, pinned)), JSON_TYPE)),
  }
}

function publishedText(text: string, contentType: string): Published {
  return published(Buffer.from(text), { contentType, cacheControl: 'public, max-age=60' })
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | null = null
  return () => (made ??= { value: make() }).value
}
