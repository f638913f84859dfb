import { startOfDay } from '../time.ts'
import type { Day } from '../time.ts'
import { BASE_URL } from './catalogue.ts'
import { NOT_PROBED } from './history.ts'
import type { Candidate } from './ranking.ts'
import { FIXED_NOTES, recommend } from './recommend.ts'
import type { StoredRun } from './schema.ts'

/** The day on which these facts were published by their makers and the routing service. */
const FACTS_DAY: Day = '2026-08-22'

/** Published facts of one model. */
interface Facts {
  id: string
  name: string
  listed: Day
  context: number
  output: number
  /** Parameters in billions, when published. */
  billions?: number
  /** Supported parameters besides {@link COMMON}. */
  supports: string
}

const COMMON = 'include_reasoning max_tokens reasoning temperature tools'

const FACTS: readonly Facts[] = [
  {
    id: 'z-ai/glm-5.2:free',
    name: 'Z.ai: GLM 5.2 (free)',
    listed: '2026-06-16',
    context: 256_000,
    output: 256_000,
    supports: 'reasoning_effort response_format seed stop structured_outputs tool_choice',
  },
  {
    id: 'nvidia/nemotron-3-ultra-550b-a55b:free',
    name: 'NVIDIA: Nemotron 3 Ultra (free)',
    listed: '2026-06-04',
    context: 1_000_000,
    output: 65_536,
    billions: 550,
    supports: 'reasoning_effort seed tool_choice',
  },
  {
    id: 'nvidia/nemotron-3-super-120b-a12b:free',
    name: 'NVIDIA: Nemotron 3 Super (free)',
    listed: '2026-03-11',
    context: 262_144,
    output: 262_144,
    billions: 120,
    supports: 'reasoning_effort response_format seed structured_outputs tool_choice',
  },
  {
    id: 'google/gemma-4-31b-it:free',
    name: 'Google: Gemma 4 31B (free)',
    listed: '2026-04-02',
    context: 262_144,
    output: 32_768,
    billions: 31,
    supports: 'response_format seed tool_choice',
  },
  {
    id: 'cohere/north-mini-code:free',
    name: 'Cohere: North Mini Code (free)',
    listed: '2026-06-17',
    context: 256_000,
    output: 64_000,
    billions: 30,
    supports: 'seed stop tool_choice',
  },
]

/** The built-in recommendation while none is stored: a few models ranked by published facts, marked as not measured. */
export function seedRun(): StoredRun {
  const run = recommend({
    now: startOfDay(FACTS_DAY),
    rankingVersion: `${FACTS_DAY}.v1`,
    refreshMode: 'metadataOnly',
    probeMode: 'metadata',
    liteEvalMode: 'off',
    baseUrl: BASE_URL,
    candidates: FACTS.map(candidateOf),
    rejections: [],
    attemptedToday: 0,
    notes: [],
    previous: null,
  })
  return {
    ...run,
    source: 'seed',
    rankingConfidence: 'low',
    rankingConfidenceReason: 'Built-in seed: ranked only by published facts, not measured.',
    notes: [
      `This is the built-in seed, with facts as published on ${FACTS_DAY}: no stored recommendation could be read.`,
      ...FIXED_NOTES,
    ],
  }
}

function candidateOf({ id, name, listed, context, output, billions, supports }: Facts): Candidate {
  const model = {
    id,
    name,
    createdAt: startOfDay(listed),
    contextLength: context,
    maxCompletionTokens: output,
    prices: { prompt: 0, completion: 0 },
    inputModalities: ['text'],
    outputModalities: ['text'],
    supportedParameters: `${COMMON} ${supports}`.split(' '),
    expirationDay: null,
    expirationUnreadable: false,
    description: billions === undefined ? '' : `${billions}B parameters`,
    isRouterOrAlias: false,
  }
  return { model, health: NOT_PROBED, evaluation: null, toolUse: 'unknown', gone: false, failuresIn72h: 0 }
}
