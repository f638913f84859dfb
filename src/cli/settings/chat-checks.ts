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

/** Whether the chat can run. */
export interface ChatSetup {
  /** Settings to set or to take away until it can; empty when it can. */
  gaps: readonly string[]
  /** True when a model is set and there is a credential for it, or it needs none. */
  hasModel: boolean
  /** The prices of that model; null when they are not known. */
  prices: Prices | null
}

export function chatSetup({ chat, openRouterKey, openRouterUrl: routerUrl }: Config): ChatSetup {
  const { model, key, url: providerUrl, prices: configured } = chat.provider
  const price = priceOf({ model: model ?? '', providerUrl, routerUrl, configured })
  const isAuto = model === 'auto'
  const hasKey = isAuto ? openRouterKey !== null : key !== null || isLoopbackUrl(providerUrl)
  const ofModel = [
    ...(hasKey ? [] : [isAuto ? 'OPENROUTER_API_KEY' : 'OPENAI_API_KEY']),
    ...(price === 'unknown' ? ['DASH_CHAT_PRICE_INPUT', 'DASH_CHAT_PRICE_OUTPUT'] : []),
  ]
  return {
    gaps: [
      ...(chat.disabled ? ['DASH_CHAT_DISABLED'] : []),
      ...(chat.sessionSecret === null ? ['DASH_SESSION_SECRET'] : []),
      ...(model === null ? ['DASH_CHAT_MODEL'] : ofModel),
    ],
    hasModel: model !== null && hasKey,
    prices: price === 'unknown' ? null : price,
  }
}

/** A setting that may hold the chat back before an operator expects it, and what to do about it. */
export interface ChatWarning {
  check: 'chat.budget' | 'chat.requests'
  problem: string
  mend: string
}

export function chatWarnings(config: Config): ChatWarning[] {
  return [largeCallOf(config), requestShareIn(config)].filter((each) => each !== null)
}

/** The requests one address may send of those of an account, when the chat depends on them. */
function requestShareIn({ chat }: Config): ChatWarning | null {
  if (chat.provider.model !== 'auto') return null
  const { budgetShare } = chat.limits
  const requests = requestShareOf(DEFAULT_DAILY_LIMIT, budgetShare)
  return {
    check: 'chat.requests',
    problem:
      `with DASH_CHAT_MODEL=auto one address may send ${requests} of the ${DEFAULT_DAILY_LIMIT} requests a day ` +
      `of an account without credits (DASH_CHAT_BUDGET_SHARE=${budgetShare / 1_000_000}); a turn takes up to ${MAX_ROUNDS}`,
    mend: 'raise DASH_CHAT_BUDGET_SHARE, or buy credits at the routing service, which allow more requests a day',
  }
}

/** A call above this part of the budget, or of the share of one address, leaves room for few turns at the same time. */
const LARGE_PART_OF_BUDGET = 1 / 10
const LARGE_PART_OF_SHARE = 1 / 4

/** How the reservation of a turn compares with the budget, when it is a large part of it or of a share. */
export function largeCallOf(config: Config): ChatWarning | null {
  const { prices } = chatSetup(config)
  if (prices === null) return null
  const { maxOutputTokens, limits } = config.chat
  const { budgetPerDay, budgetShare } = limits
  const { withTools: call } = shortestCallCost({ maxOutputTokens, prices })
  const perAddress = shareOf(budgetPerDay, budgetShare)
  const fitsBudget = call <= budgetPerDay * LARGE_PART_OF_BUDGET
  if (fitsBudget && call <= perAddress * LARGE_PART_OF_SHARE) return null
  const room = Math.min(Math.floor(budgetPerDay / call), 1_000_000)
  const ofAddress = Math.min(Math.floor(perAddress / call), room)
  // The least share and the least budget of which a call is no large part, in whole hundredths and cents.
  const share = Math.ceil((call / LARGE_PART_OF_SHARE / budgetPerDay) * 100) / 100
  const ofShare = call / LARGE_PART_OF_SHARE / (budgetShare / 1_000_000)
  const budget = Math.ceil(Math.max(call / LARGE_PART_OF_BUDGET, ofShare) / 10_000) * 10_000
  const remedies = [
    ...(fitsBudget ? [`DASH_CHAT_BUDGET_SHARE to at least ${share}`] : []),
    `DASH_CHAT_BUDGET_USD_PER_DAY to at least ${dollarsOf(budget)}`,
  ]
  return {
    check: 'chat.budget',
    problem:
      `one turn with tools reserves up to ${dollarsOf(call)} of the day's ${dollarsOf(budgetPerDay)} ` +
      `(DASH_CHAT_BUDGET_USD_PER_DAY) and of the ${dollarsOf(perAddress)} of one address ` +
      `(DASH_CHAT_BUDGET_SHARE=${budgetShare / 1_000_000}): ${room} fit at once, ${ofAddress} of one address`,
    mend: `set ${remedies.join(' or ')}, or lower DASH_CHAT_MAX_OUTPUT_TOKENS`,
  }
}

function dollarsOf(microUsd: number): string {
  return `$${Number((microUsd / 1_000_000).toFixed(6))}`
}

/** Logs at the start what an operator would otherwise learn from refusals. */
export function logChatStart(config: Config, log: Log): void {
  const { gaps } = chatSetup(config)
  const { disabled, sessionSecret, provider } = config.chat
  // Half set up is a mistake, which a person at a terminal sees too.
  const isBegun = !disabled && [sessionSecret, provider.model, provider.key].some((each) => each !== null)
  if (gaps.length > 0) return log[isBegun ? 'warn' : 'info']({ missing: gaps }, 'the chat is off')
  for (const { problem, mend } of chatWarnings(config)) log.warn({}, `${problem}; ${mend}`)
}
