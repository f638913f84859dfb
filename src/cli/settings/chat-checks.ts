import { MAX_ROUNDS } from '../../domain/agent/bounds.ts'
import {
  isLoopbackUrl,
  priceOf,
  requestShareOf,
  shareOf,
  shortestCallCost,
} from '../../domain/agent/budget.ts'
import { DEFAULT_DAILY_LIMIT } from '../../domain/models/quota.ts'
import type { Prices } from '../../domain/agent/model-call.ts'
import type { Log } from '../../server/route.ts'
import type { Config } from './config.ts'

export interface ChatSetup {
  /** Settings that must be set or removed before the chat can run; empty if it can. */
  gaps: readonly string[]
  /** True if a model is set, with a key if it needs one. */
  hasModel: boolean
  /** Prices of the model; null if unknown. */
  prices: Prices | null
}

export function chatSetup({ chat, openRouterKey, openRouterUrl: routerUrl }: Config): ChatSetup {
  const { model, key, url: providerUrl, prices: configured } = chat.provider
  const price = priceOf({ model: model ?? '', providerUrl, routerUrl, configured })
  const isAuto = model === 'auto'
  const hasKey = isAuto ? openRouterKey !== null : key !== null || isLoopbackUrl(providerUrl)
  const modelGaps = [
    ...(hasKey ? [] : [isAuto ? 'OPENROUTER_API_KEY' : 'OPENAI_API_KEY']),
    ...(price === 'unknown' ? ['DASH_CHAT_PRICE_INPUT', 'DASH_CHAT_PRICE_OUTPUT'] : []),
  ]
  return {
    gaps: [
      ...(chat.disabled ? ['DASH_CHAT_DISABLED'] : []),
      ...(chat.sessionSecret === null ? ['DASH_SESSION_SECRET'] : []),
      ...(model === null ? ['DASH_CHAT_MODEL'] : modelGaps),
    ],
    hasModel: model !== null && hasKey,
    prices: price === 'unknown' ? null : price,
  }
}

/** Warning about a setting that may limit the chat more than an operator expects. */
export interface ChatWarning {
  check: 'chat.budget' | 'chat.requests'
  problem: string
  mend: string
}

export function chatWarnings(config: Config): ChatWarning[] {
  return [largeCallOf(config), requestShareIn(config)].filter((each) => each !== null)
}

/** Warns how many of an account's daily requests one address may use, if the chat depends on that account. */
function requestShareIn({ chat }: Config): ChatWarning | null {
  if (chat.provider.model !== 'auto') return null
  const { budgetShare } = chat.limits
  const requests = requestShareOf(DEFAULT_DAILY_LIMIT, budgetShare)
  return {
    check: 'chat.requests',
    problem:
      `with DASH_CHAT_MODEL=auto one address may use ${requests} of the ${DEFAULT_DAILY_LIMIT} daily requests ` +
      `of an account without credits (DASH_CHAT_BUDGET_SHARE=${budgetShare / 1_000_000}); a turn needs up to ${MAX_ROUNDS}`,
    mend: 'raise DASH_CHAT_BUDGET_SHARE, or buy credits at the routing service to get more daily requests',
  }
}

/** A call above this part of the budget, or of one address's share, allows few turns at the same time. */
const LARGE_PART_OF_BUDGET = 1 / 10
const LARGE_PART_OF_SHARE = 1 / 4

/** Warns if the reservation of one turn is a large part of the budget or of one address's share. */
export function largeCallOf(config: Config): ChatWarning | null {
  const { prices } = chatSetup(config)
  if (prices === null) return null
  const { maxOutputTokens, limits } = config.chat
  const { budgetPerDay, budgetShare } = limits
  const { withTools: call } = shortestCallCost({ maxOutputTokens, prices })
  const perAddress = shareOf(budgetPerDay, budgetShare)
  const isSmall = call <= budgetPerDay * LARGE_PART_OF_BUDGET && call <= perAddress * LARGE_PART_OF_SHARE
  // A budget of nothing is exhausted, even for a free model.
  if (isSmall && budgetPerDay > 0) return null
  return {
    check: 'chat.budget',
    problem:
      `${budgetPerDay > 0 ? 'few turns fit at a time' : 'no turn is answered'}: one turn with tools reserves up to ${dollarsOf(call)} of the day's ` +
      `${dollarsOf(budgetPerDay)} (DASH_CHAT_BUDGET_USD_PER_DAY) and of the ${dollarsOf(perAddress)} of one address ` +
      `(DASH_CHAT_BUDGET_SHARE=${budgetShare / 1_000_000})`,
    mend: 'raise the budget or the share, or lower DASH_CHAT_MAX_OUTPUT_TOKENS',
  }
}

function dollarsOf(microUsd: number): string {
  return `$${Number((microUsd / 1_000_000).toFixed(6))}`
}

/** Logs at the start why the chat is off or limited; otherwise only refused users would notice. */
export function logChatStart(config: Config, log: Log): void {
  const { gaps } = chatSetup(config)
  const { disabled, sessionSecret, provider } = config.chat
  // A partial setup is a mistake: it is logged as a warning, which terminals show.
  const isBegun = !disabled && [sessionSecret, provider.model, provider.key].some((each) => each !== null)
  if (gaps.length > 0) return log[isBegun ? 'warn' : 'info']({ missing: gaps }, 'the chat is off')
  for (const { problem, mend } of chatWarnings(config)) log.warn({}, `${problem}; ${mend}`)
}
