import { startOfDay } from '../time.ts'
import type { Day } from '../time.ts'
import { BASE_URL } from './catalogue.ts'
import type { CatalogueModel } from './catalogue.ts'
import { STANDING_NOTES, recommend } from './recommend.ts'
import type { Candidate } from './ranking.ts'
import type { StoredRun } from './schema.ts'

/** The day on which the facts below were read from what the makers and the routing service publish. */
const FACTS_DAY: Day = '2026-08-22'

const COMMON = ['include_reasoning', 'max_tokens', 'reasoning', 'temperature', 'tools'] as const

/** Name, day of listing, context, longest output, parameters in billions where published, and what is supported besides. */
const FACTS: readonly (readonly [
  id: string,
  name: string,
  listed: Day,
  context: number,
  output: number,
  billions: number | null,
  supports: readonly string[],
])[] = [
  [
    'z-ai/glm-5.2:free',
    'Z.ai: GLM 5.2 (free)',
    '2026-06-16',
    256_000,
    256_000,
    null,
    ['reasoning_effort', 'response_format', 'seed', 'stop', 'structured_outputs', 'tool_choice'],
  ],
  [
    'nvidia/nemotron-3-ultra-550b-a55b:free',
    'NVIDIA: Nemotron 3 Ultra (free)',
    '2026-06-04',
    1_000_000,
    65_536,
    550,
    ['reasoning_effort', 'seed', 'tool_choice'],
  ],
  [
    'nvidia/nemotron-3-super-120b-a12b:free',
    'NVIDIA: Nemotron 3 Super (free)',
    '2026-03-11',
    262_144,
    262_144,
    120,
    ['reasoning_effort', 'response_format', 'seed', 'structured_outputs', 'tool_choice'],
  ],
  [
    'google/gemma-4-31b-it:free',
    'Google: Gemma 4 31B (free)',
    '2026-04-02',
    262_144,
    32_768,
    31,
    ['response_format', 'seed', 'tool_choice'],
  ],
  [
    'cohere/north-mini-code:free',
    'Cohere: North Mini Code (free)',
    '2026-06-17',
    256_000,
    64_000,
    30,
    ['seed', 'stop', 'tool_choice'],
  ],
]

/**
 * What is served while there is no stored recommendation: a few models by their published facts alone. Nothing of it was
 * measured, and it says so.
 */
export function seedRun(): StoredRun {
  const now = startOfDay(FACTS_DAY)
  const run = recommend({
    now,
    rankingVersion: `${FACTS_DAY}.v1`,
    refreshMode: 'metadataOnly',
    probeMode: 'metadata',
    liteEvalMode: 'off',
    baseUrl: BASE_URL,
    candidates: FACTS.map(candidateOf),
    rejections: [],
    unsuffixed: [],
    attemptedToday: 0,
    notes: [],
    previous: null,
  })
  return {
    ...run,
    source: 'seed',
    rankingConfidence: 'low',
    rankingConfidenceReason: 'Built-in seed: ranked by published facts alone, nothing was measured.',
    notes: [
      `This is the built-in seed, with facts as published on ${FACTS_DAY}: no stored recommendation could be read.`,
      ...STANDING_NOTES,
    ],
  }
}

function candidateOf([
  id,
  name,
  listed,
  context,
  output,
  billions,
  supports,
]: (typeof FACTS)[number]): Candidate {
  const model: CatalogueModel = {
    id,
    name,
    createdAt: startOfDay(listed),
    contextLength: context,
    maxCompletionTokens: output,
    prices: { prompt: 0, completion: 0 },
    inputModalities: ['text'],
    outputModalities: ['text'],
    supportedParameters: [...COMMON, ...supports],
    expirationDay: null,
    expirationUnreadable: false,
    description: billions === null ? '' : `${billions}B parameters`,
    standsForOthers: false,
  }
  return {
    model,
    health: { status: 'not_probed', latencyMs: null, rateLimitKind: 'none', checkedAt: null },
    evaluation: null,
    toolUse: 'unknown',
    gone: false,
    failuresIn72h: 0,
  }
}
