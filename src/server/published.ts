import type { H3Event } from 'h3'
import { matchesEntityTag } from '../domain/conditional.ts'
import { sha256Hex, sha256HexToBase64 } from '../domain/digest.ts'
import { respond } from './respond.ts'

/** Bytes that are published under their digest, with the headers that follow from them. */
export interface Published {
  body: Buffer
  etag: string
  /** For a 200 and a 304 alike. */
  headers: Readonly<Record<string, string>>
  /** Only where the body follows. */
  contentHeaders: Readonly<Record<string, string>>
}

/** What is said of published bytes beside their digest. */
export interface PublishedAs {
  contentType: string
  cacheControl: string
  /** Further headers, for a 200 and a 304 alike. */
  headers?: Readonly<Record<string, string>>
}

/** @param sha256 digest of the body where it is known */
export function published(body: Buffer, as: PublishedAs, sha256 = sha256Hex(body)): Published {
  const etag = `"${sha256}"`
  const digest = `sha-256=:${sha256HexToBase64(sha256)}:`
  return {
    body,
    etag,
    headers: { 'cache-control': as.cacheControl, etag, ...as.headers, 'repr-digest': digest },
    contentHeaders: { 'content-type': as.contentType, 'content-digest': digest },
  }
}

/**
 * 304 when the client holds these very bytes, else 200 with them.
 *
 * @param headers of the route, for both
 */
export function respondPublished(
  event: H3Event,
  headers: Readonly<Record<string, string>>,
  { body, etag, headers: own, contentHeaders }: Published,
): Response {
  const common = { ...headers, ...own }
  if (matchesEntityTag(event.req.headers.get('if-none-match'), etag)) return respond(event, 304, common, null)
  return respond(event, 200, { ...common, ...contentHeaders }, body)
}
