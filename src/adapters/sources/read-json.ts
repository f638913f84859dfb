import type { IncomingHttpHeaders } from 'node:http'
import { SourceUnavailable } from '../../domain/feed/live-source.ts'

/**
 * The value of a JSON answer.
 *
 * @throws SourceUnavailable telling an HTML page, an empty answer, JSON that is cut short and anything else apart
 */
export function readJson(url: string, text: string, headers: IncomingHttpHeaders): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch (cause) {
    throw new SourceUnavailable(`${url}: ${whatElse(text, headers, cause)}`, { cause })
  }
}

function whatElse(text: string, headers: IncomingHttpHeaders, error: unknown): string {
  const type = headers['content-type'] ?? 'no content type'
  if (text.trim() === '') return 'its answer is empty'
  if (text.trimStart().startsWith('<')) return `it answered with a page (${type}) instead of JSON`
  if (isCutShort(text, error)) return `its JSON is cut short after ${text.length} characters`
  return `its answer (${type}) is not JSON`
}

/** True when nothing was wrong with a text before its end. */
function isCutShort(text: string, error: unknown): boolean {
  const message = error instanceof Error ? error.message : ''
  if (/Unexpected end|Unterminated/.test(message)) return true
  return Number(/at position (\d+)/.exec(message)?.[1]) === text.length
}
