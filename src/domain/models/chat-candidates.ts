import type { StoredRun } from './schema.ts'

/** A recommended model the chat may run on. */
export interface ChatCandidate {
  id: string
  /** True for a model that thinks, and can be asked to do little of it. */
  thinks: boolean
}

/** The recommended models the chat may run on, best first: those that can call tools, as far as anybody knows. */
export function chatCandidates({ models }: StoredRun): ChatCandidate[] {
  return models
    .filter(({ supportsTools, toolUse }) => supportsTools && toolUse !== 'disproven')
    .map(({ id, supportsReasoning }) => ({ id, thinks: supportsReasoning }))
}
