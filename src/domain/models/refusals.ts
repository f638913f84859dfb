/** Refusal codes of `/api/free-llm/*` and `/api/status/free-llm` (docs/free-models.md): the whole, closed list. */
export const FREE_MODELS_REFUSALS = [
  'invalid_limit',
  'invalid_filter',
  'method_not_allowed',
  'internal_error',
] as const
export type FreeModelsRefusal = (typeof FREE_MODELS_REFUSALS)[number]
