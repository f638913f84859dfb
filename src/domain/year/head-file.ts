import { z } from 'zod'
import { isSha256Hex } from '../digest.ts'
import { formatInstant, parseInstant } from '../time.ts'
import type { Head } from './ledger.ts'

const headFile = z.strictObject({
  seq: z.int().min(1),
  leaf: z.string().refine(isSha256Hex),
  time: z.string(),
})

/** The text of a head file: JSON and a newline (docs/publishing.md). */
export function formatHead({ seq, leaf, time }: Head): string {
  return `${JSON.stringify({ seq, leaf, time: formatInstant(time) })}\n`
}

/** The head in a head file, or null when its bytes are none. */
export function parseHead(bytes: Uint8Array): Head | null {
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    return null
  }
  const parsed = headFile.safeParse(value)
  const time = parsed.success ? parseInstant(parsed.data.time) : null
  return parsed.success && time !== null ? { seq: parsed.data.seq, leaf: parsed.data.leaf, time } : null
}
