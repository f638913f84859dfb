import type { Usage } from '../../domain/agent/model-call.ts'
import { fieldsOf } from './fields.ts'
import type { Fields } from './fields.ts'

/** No model reads or writes as many tokens in one round. */
const MOST_TOKENS = 10_000_000

/** Usage as the Responses API tells it; null when it does not or tells nonsense. */
export function usageOfResponse(response: Fields | null): Usage | null {
  const usage = fieldsOf(response?.['usage'])
  if (usage === null) return null
  const cached = fieldsOf(usage['input_tokens_details'])?.['cached_tokens']
  return saneUsage(usage['input_tokens'], usage['output_tokens'], cached)
}

/** Usage as chat completions tell it; null when they do not or tell nonsense. */
export function usageOfCompletion(chunk: Fields): Usage | null {
  const usage = fieldsOf(chunk['usage'])
  if (usage === null) return null
  const cached = fieldsOf(usage['prompt_tokens_details'])?.['cached_tokens']
  return saneUsage(usage['prompt_tokens'], usage['completion_tokens'], cached)
}

/** A share of the cache that cannot be right counts as none: nothing is charged at a lower price without proof. */
function saneUsage(read: unknown, written: unknown, cached: unknown): Usage | null {
  if (!isCount(read) || !isCount(written)) return null
  return { in: read, out: written, cached: isCount(cached) && cached <= read ? cached : 0 }
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MOST_TOKENS
}
