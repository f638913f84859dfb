import { sha256Hex, sha256HexToBase64 } from '../../domain/digest.ts'
import { formatHead } from '../../domain/year/head-file.ts'
import type { Head, LedgerContents } from '../../domain/year/ledger.ts'
import { leafText, legacyText } from '../../domain/year/ledger-text.ts'

/** A text that is published, with the headers that follow from it. */
export interface PublishedText {
  body: Buffer
  etag: string
  /** For a 200 and a 304 alike. */
  headers: Readonly<Record<string, string>>
  /** Only where the body follows. */
  contentHeaders: Readonly<Record<string, string>>
}

/** What a host publishes of its proved ledgers, for anyone to prove again (docs/auditing.md). */
export interface PublishedLedger {
  /** One line an entry, each the text its leaf is the digest of. */
  entries: () => PublishedText
  /** The text the seal is the digest of. */
  legacy: () => PublishedText
  /** The newest head; null when there is none. */
  head: () => PublishedText | null
}

const NDJSON_TYPE = 'application/x-ndjson; charset=utf-8'

/** Each text is made when it is first asked for, and kept: ten years of entries are two megabytes. */
export function publishedLedger({ rows, legacy }: LedgerContents, head: Head | null): PublishedLedger {
  // While an import has begun and not ended, a head is there before the entry it pins.
  const pinned = head !== null && head.seq <= rows.length ? head : null
  return {
    entries: once(() => publishedText(rows.map((row) => `${leafText(row)}\n`).join(''), NDJSON_TYPE)),
    legacy: once(() => publishedText(legacyText(legacy), NDJSON_TYPE)),
    head: () => pinned && publishedText(formatHead(pinned), 'application/json; charset=utf-8'),
  }
}

function publishedText(text: string, contentType: string): PublishedText {
  const body = Buffer.from(text)
  const sha256 = sha256Hex(body)
  const etag = `"${sha256}"`
  const digest = `sha-256=:${sha256HexToBase64(sha256)}:`
  return {
    body,
    etag,
    headers: { 'cache-control': 'public, max-age=60', etag, 'repr-digest': digest },
    contentHeaders: { 'content-type': contentType, 'content-digest': digest },
  }
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | null = null
  return () => (made ??= { value: make() }).value
}
