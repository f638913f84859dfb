import { MAX_ROUNDS } from '../../domain/agent/bounds.ts'
import {
  isLoopbackUrl,
  priceOf,
  requestShareOf,
  shareOf,
  shortestCallCost,
} from '../../domain/agent/budget.ts'
import { DAILY_LIMIT_UNTOLD } from '../../domain/models/quota.ts'
import type { Log } from '../../server/route.ts'
import type { Config } from './config.ts'

/** What keeps the chat from running, as the variables to set or to take away; empty when nothing does. */
export function chatGaps(config: Config): string[] {
  const { chat, openRouterKey, openRouterUrl: routerUrl } = config
  const { model, key, url: providerUrl, prices: configured } = chat.provider
  const gaps = chat.disabled ? ['DASH_CHAT_DISABLED'] : []
  if (chat.sessionSecret === null) gaps.push('DASH_SESSION_SECRET')
  if (model === null) return [...gaps, 'DASH_CHAT_MODEL']
  if (model === 'auto') return openRouterKey === null ? [...gaps, 'OPENROUTER_API_KEY'] : gaps
  if (key === null && !isLoopbackUrl(providerUrl)) gaps.push('OPENAI_API_KEY')
  if (priceOf({ model, providerUrl, routerUrl, configured }) === 'unknown')
    gaps.push('DASH_CHAT_PRICE_INPUT', 'DASH_CHAT_PRICE_OUTPUT')
  return gaps
}

/** What may hold the chat back before an operator expects it, and what to set. */
export interface ChatWarning {
  check: 'chat.budget' | 'chat.requests'
  problem: string
  mend: string
}

/** Every such thing that the configuration tells. */
export function chatWarnings(config: Config): ChatWarning[] {
  return [largeCallOf(config), requestShareIn(config)].filter((each) => each !== null)
}

/** What one address may send of the requests of an account, when the chat depends on them. */
function requestShareIn({ chat }: Config): ChatWarning | null {
  if (chat.provider.model !== 'auto') return null
  const { budgetShare } = chat.limits
  const requests = requestShareOf(DAILY_LIMIT_UNTOLD, budgetShare)
  return {
    check: 'chat.requests',
    problem:
      `with DASH_CHAT_MODEL=auto one address may send ${requests} of the ${DAILY_LIMIT_UNTOLD} requests a day ` +
      `of an account without credits (DASH_CHAT_BUDGET_SHARE=${budgetShare / 1_000_000}); a turn takes up to ${MAX_ROUNDS}`,
    mend: 'raise DASH_CHAT_BUDGET_SHARE, or buy credits at the routing service, which allow more requests a day',
  }
}

/** A call above this part of the budget, or of the share of one address, leaves room for few turns at the same time. */
const LARGE_PART_OF_BUDGET = 1 / 10
const LARGE_PART_OF_SHARE = 1 / 4

/** How the reservation of a turn compares with the budget, when it is a large part of it or of a share. */
export function largeCallOf({ chat, openRouterUrl: routerUrl }: Config): ChatWarning | null {
  const { model, url: providerUrl, prices: configured } = chat.provider
  const prices = priceOf({ model: model ?? '', providerUrl, routerUrl, configured })
  if (prices === 'unknown') return null
  const { maxOutputTokens } = chat
  const { budgetPerDay, budgetShare } = chat.limits
  const { withTools: call } = shortestCallCost({ maxOutputTokens, prices })
  const perAddress = shareOf(budgetPerDay, budgetShare)
  const fitsBudget = call <= budgetPerDay * LARGE_PART_OF_BUDGET
  if (fitsBudget && call <= perAddress * LARGE_PART_OF_SHARE) return null
  const room = Math.min(Math.floor(budgetPerDay / call), 1_000_000)
  const ofAddress = Math.min(Math.floor(perAddress / call), room)
  const remedies = [
    ...(fitsBudget ? [`DASH_CHAT_BUDGET_SHARE to at least ${neededShare(call, budgetPerDay)}`] : []),
    `DASH_CHAT_BUDGET_USD_PER_DAY to at least ${dollarsOf(neededBudget(call, budgetShare))}`,
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

/** The least budget of which a call is no large part, in whole cents. */
function neededBudget(call: number, budgetShare: number): number {
  const perBudget = call / LARGE_PART_OF_BUDGET
  const perShare = call / LARGE_PART_OF_SHARE / (budgetShare / 1_000_000)
  return Math.ceil(Math.max(perBudget, perShare) / 10_000) * 10_000
}

/** The least share of a budget of which a call is no large part, in whole hundredths. */
function neededShare(call: number, budgetPerDay: number): number {
  return Math.ceil((call / LARGE_PART_OF_SHARE / budgetPerDay) * 100) / 100
}

function dollarsOf(microUsd: number): string {
  return `$${Number((microUsd / 1_000_000).toFixed(6))}`
}

/** Logs at the start what an operator would otherwise learn from refusals. */
export function tellChatStart(config: Config, log: Log): void {
  const gaps = chatGaps(config)
  const { disabled, sessionSecret, provider } = config.chat
  // Half set up is a mistake, which a person at a terminal sees too.
  const isBegun = !disabled && [sessionSecret, provider.model, provider.key].some((each) => each !== null)
  if (gaps.length > 0) return log[isBegun ? 'warn' : 'info']({ missing: gaps }, 'the chat is off')
  for (const { problem, mend } of chatWarnings(config)) log.warn({}, `${problem}; ${mend}`)
}
