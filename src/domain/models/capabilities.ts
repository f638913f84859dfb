import type { CatalogueModel } from './catalogue.ts'
import type { EvalSummary } from './schema.ts'

/** What a model claims to support, each by the parameter of the service that stands for it. */
const PARAMETER_OF = {
  supportsTools: 'tools',
  supportsToolChoice: 'tool_choice',
  supportsStructuredOutputs: 'structured_outputs',
  supportsResponseFormat: 'response_format',
  supportsReasoning: 'reasoning',
  supportsIncludeReasoning: 'include_reasoning',
  supportsSeed: 'seed',
  supportsStop: 'stop',
} as const

/** Claims of the catalogue, as they are published. */
export type Capabilities = Record<keyof typeof PARAMETER_OF, boolean>

export function capabilitiesOf({ supportedParameters }: CatalogueModel): Capabilities {
  const entries = Object.entries(PARAMETER_OF).map(([name, parameter]) => [
    name,
    supportedParameters.includes(parameter),
  ])
  return Object.fromEntries(entries) as Capabilities
}

/** Up to three phrases on what a model can do, and how many tasks it passed. */
export function reasonFor(model: CatalogueModel, { passed, total }: EvalSummary): string {
  const { supportsTools, supportsStructuredOutputs, supportsReasoning } = capabilitiesOf(model)
  const phrases = [
    ...(supportsTools ? ['tools'] : []),
    ...(supportsStructuredOutputs ? ['structured outputs'] : []),
    ...(supportsReasoning ? ['reasoning'] : []),
    contextPhrase(model.contextLength ?? 0),
  ].slice(0, 3)
  const text = phrases.join(', ')
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}; lite eval ${passed}/${total}`
}

function contextPhrase(tokens: number): string {
  return `${tokens < 1_000_000 ? `${Math.floor(tokens / 1_000)}k` : `${Math.floor(tokens / 100_000) / 10}M`} context`
}
