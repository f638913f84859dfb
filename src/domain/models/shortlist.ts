import { z } from 'zod'
import { MODEL_ID_PATTERN } from './catalogue.ts'
import type { Instant } from '../time.ts'
import { MAX_FRESH_HOURS } from './payloads.ts'
import { meets } from './shortlist-query.ts'
import type { ShortlistFilter } from './shortlist-query.ts'

const supported = z.boolean()

/** What a reader needs of a ranked model, whoever serves it; older hosts lack `toolUse`. */
const modelSchema = z.looseObject({
  id: z.string().regex(MODEL_ID_PATTERN),
  name: z.string(),
  score: z.number(),
  contextLength: z.number(),
  healthStatus: z.string(),
  supportsTools: supported,
  supportsToolChoice: supported,
  supportsStructuredOutputs: supported,
  supportsResponseFormat: supported,
  supportsReasoning: supported,
  supportsSeed: supported,
  supportsStop: supported,
  toolUse: z.enum(['proven', 'disproven', 'unknown']).optional(),
})

const shortlistSchema = z.looseObject({
  updatedAt: z.iso.datetime(),
  rankingConfidence: z.string(),
  baseUrl: z.url({ protocol: /^https?$/ }),
  fallback: z.looseObject({ id: z.string().regex(MODEL_ID_PATTERN) }),
  models: z.array(modelSchema),
  seed: z.boolean().optional(),
  stale: z.boolean().optional(),
})

/** A shortlist as its reader sees it; further fields are kept. */
export type Shortlist = z.infer<typeof shortlistSchema>
type ShortlistModel = Shortlist['models'][number]

/** The shortlist in the body of a top-models answer, as it was sent; null for a body that is none. */
export function parseShortlist(body: unknown): Shortlist | null {
  return shortlistSchema.safeParse(body).success ? (body as Shortlist) : null
}

/** Whether a shortlist is too old to rely on; hosts that do not say are judged by its time. */
export function isStale({ stale, updatedAt }: Shortlist, now: Instant): boolean {
  return stale ?? now - Date.parse(updatedAt) > MAX_FRESH_HOURS * 3_600_000
}

/** The first wanted model of a shortlist. */
export interface Pick {
  primary: ShortlistModel
  /** The shortlist as a recommendation: `primary` and `alternatives` in place of `count` and `models`. */
  recommendation: Record<string, unknown>
}

/** Picks the best model that passes a filter, the others that pass as its alternatives; null when none does. */
export function pickModel(shortlist: Shortlist, filter: ShortlistFilter): Pick | null {
  const [primary, ...alternatives] = shortlist.models.filter((model) => meets(model, filter))
  if (primary === undefined) return null
  const fields = Object.entries(shortlist).flatMap(([name, value]): [string, unknown][] => {
    if (name === 'count') return []
    if (name !== 'models') return [[name, value]]
    return [
      ['primary', primary],
      ['alternatives', alternatives],
    ]
  })
  return { primary, recommendation: Object.fromEntries(fields) }
}
