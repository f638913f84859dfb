import { isSha256Hex } from '../digest.ts'
import { formatInstant, parseInstant } from '../time.ts'
import type { Head } from './ledger.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** The text of a head file: JSON and a newline (docs/publishing.md). */
export function formatHead({ seq, leaf, time }: Head): string {
  return `${JSON.stringify({ seq, leaf, time: formatInstant(time) })}\n`
}

/** The head in a head file, or null when its bytes are none. */
export function parseHead(bytes: Uint8Array): Head | null {
  let value: unknown
  try {
    value = JSON.parse(utf8.decode(bytes))
  } catch {
    return null
  }
  // By hand: an audit reads one a day of the archive's whole life, and a schema takes longer than reading the file.
  if (typeof value !== 'object' || value === null) return null
  const { seq, leaf, time: text, ...others } = value as Record<string, unknown>
  if (typeof seq !== 'number' || !Number.isSafeInteger(seq) || seq < 1) return null
  if (typeof leaf !== 'string' || !isSha256Hex(leaf)) return null
  const time = typeof text === 'string' ? parseInstant(text) : null
  return time === null || Object.keys(others).length > 0 ? null : { seq, leaf, time }
}
