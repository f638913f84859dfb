import {
  topModelsPayload,
  isStale,
  parseShortlist,
  pickModel,
  NEED_NAMES,
  NO_FILTER,
  parseNeeds,
} from '../../domain/models/shortlist.ts'
import { seedRun } from '../../domain/models/recommend.ts'
import type { Shortlist, Need } from '../../domain/models/shortlist.ts'
import { proveRun } from '../../domain/models/stored-run.ts'
import { Refusal } from '../../domain/refusal.ts'
import { hasStoreFolder } from '../data-folder.ts'
import { EXIT } from '../exit-codes.ts'
import type { CommandContext } from '../context.ts'
import { flagValue, hostFlag } from '../settings/environment.ts'
import { escaped, fail, shellWord } from '../terminal.ts'
import type { Terminal } from '../terminal.ts'

interface ModelFlags {
  id: boolean
  env: boolean
  needs?: string
  url?: string
}

/** `dash model`. A damaged store is refused, not replaced by the seed, because its operator can repair it. */
export async function modelCommand(context: CommandContext, flags: ModelFlags): Promise<number> {
  const { terminal } = context
  const needs = parseFlags(flags, terminal)
  const shortlist =
    flags.url === undefined ? await ownShortlist(context) : await hostShortlist(flags.url, context)
  const pick = pickModel(shortlist, { ...NO_FILTER, needs })
  if (pick === null) {
    const condition = needs.length > 0 ? ` that meets --needs ${needs.join(',')}` : ''
    const advice = needs.length > 0 ? 'drop a need, or use' : 'use'
    const reason = `the recommendation has no model${condition}; ${advice} the router ${shortlist.fallback.id}`
    return fail(terminal, reason, EXIT.failed)
  }
  const { primary, recommendation } = pick
  warn(shortlist, flags.url, terminal)
  terminal.result(recommendation, lineOf(flags, primary, shortlist))
  return EXIT.done
}

function parseFlags({ id, env, needs }: ModelFlags, { json }: Terminal): Need[] {
  if ([id, env, json].filter(Boolean).length > 1)
    throw new Refusal('usage', '--id, --env and --json exclude each other; choose one')
  if (needs === undefined) return []
  return flagValue('--needs', needs, `one or more of ${NEED_NAMES.join(', ')}, comma-separated`, parseNeeds)
}

async function ownShortlist({ config, container }: CommandContext): Promise<Shortlist> {
  const bytes = hasStoreFolder(config) ? await (await container.recommendations()).current() : null
  const run = { ...(bytes === null ? seedRun() : proveRun(bytes)), baseUrl: config.publishedBaseUrl }
  const served = { run, seed: bytes === null, storeAvailable: true }
  return topModelsPayload(served, { limit: null, filter: NO_FILTER }, Date.now())
}

async function hostShortlist(url: string, { container, signal }: CommandContext): Promise<Shortlist> {
  const base = hostFlag(url)
  const host = await container.publishedFeeds(base)
  const shortlist = parseShortlist(await host.topModels(signal))
  if (shortlist !== null) return shortlist
  throw new Refusal(
    'source_unavailable',
    `the host ${base} serves no shortlist of free models at /api/free-llm/top-models; check --url`,
  )
}

function warn(shortlist: Shortlist, url: string | undefined, { note }: Terminal): void {
  const whose = url === undefined ? 'no recommendation is stored here' : `${url} has no stored recommendation`
  // Only the operator of a store can renew its recommendation.
  const advice = url === undefined ? '; run dash evaluate-models' : ''
  if (shortlist.seed === true) note(`${whose}: this is the built-in seed, which was not measured${advice}`)
  else if (isStale(shortlist, Date.now()))
    note(`the recommendation is stale, last updated ${shortlist.updatedAt}${advice}`)
}

function lineOf({ id, env }: ModelFlags, primary: Shortlist['models'][number], shortlist: Shortlist): string {
  if (id) return escaped(primary.id)
  if (env)
    return `export OPENAI_BASE_URL=${forShell(shortlist.baseUrl)}\nexport OPENAI_MODEL=${forShell(primary.id)}`
  const { rankingConfidence: confidence, updatedAt } = shortlist
  return escaped(
    `${primary.id} (${primary.name}), score ${primary.score}, confidence ${confidence}, updated ${updatedAt}`,
  )
}

/** Quotes text from a host, so that a shell never executes it. */
const forShell = (text: string): string => shellWord(escaped(text))
