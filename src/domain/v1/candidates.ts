import type { RankedModel } from '../models/schema.ts'
import { isAuto } from './completion-request.ts'
import type { CompletionNeeds } from './completion-request.ts'

/** Maximum number of models tried for one request: the caller's account has few requests a day. */
const MAX_MODELS = 3

/** The models for a request, best first, or the reason for each model that there is none. */
export type Selection =
  { models: readonly RankedModel[] } | { rejected: Readonly<Record<string, string>> } | { unknown: true }

/**
 * Selects the models for a request by measured capability (docs/v1.md).
 *
 * @param ranked the current ranking, best first
 * @param model an `auto` model, or a ranked id, which is the only candidate then
 * @param sticky the model of this conversation so far; it goes first if it is still a candidate
 */
export function selectModels(
  ranked: readonly RankedModel[],
  model: string,
  needs: CompletionNeeds,
  sticky: string | null,
): Selection {
  const considered = isAuto(model) ? ranked : ranked.filter(({ id }) => id === model)
  if (considered.length === 0 && !isAuto(model)) return { unknown: true }
  const rejected: Record<string, string> = {}
  const fitting = considered.filter((each) => {
    const reason = rejectionOf(each, needs)
    if (reason !== null) rejected[each.id] = reason
    return reason === null
  })
  if (fitting.length === 0) return { rejected }
  const first = fitting.filter(({ id }) => id === sticky)
  const others = fitting.filter(({ id }) => id !== sticky)
  return { models: [...first, ...others].slice(0, MAX_MODELS) }
}

/** The first need that a model does not meet; null if it meets all. What was not measured is not assumed. */
function rejectionOf(model: RankedModel, { tools, json, context }: CompletionNeeds): string | null {
  if (tools && !(model.supportsTools && model.toolUse === 'proven')) return `tool use is ${model.toolUse}`
  if (json === 'schema' && !model.supportsStructuredOutputs) return 'no structured outputs'
  if (json === 'object' && !(model.supportsResponseFormat || model.supportsStructuredOutputs))
    return 'no JSON response format'
  if (model.contextLength < context)
    return `a context of ${model.contextLength} tokens, but about ${context} are needed`
  return null
}
