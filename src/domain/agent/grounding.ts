import type { Day } from '../time.ts'

/** What a turn is given to stand on before the model is asked. */
export interface Grounding {
  /** What the turn is about; an item that is not stored falls back to the site. */
  scope: 'site' | 'item'
  /** The data as JSON text, of strangers' words and numbers; see `turnInput`. */
  data: string
  /** UTC day of the turn. */
  day: Day
  /** Digest of everything stored that an answer may be made of; null: the answer must not be kept. */
  revision: string | null
}
