import { isLoopbackUrl, priceOf, worstCase } from '../domain/agent/budget.ts'
import { parseChatRequest } from '../domain/agent/chat-request.ts'
import { largestInputBytes } from '../domain/agent/prompt.ts'
import type { Log } from '../server/log.ts'
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

/** Says at the start what an operator would otherwise learn from refusals. */
export function tellChatStart(config: Config, log: Log): void {
  const { chat, openRouterUrl: routerUrl } = config
  const gaps = chatGaps(config)
  if (gaps.length > 0) return log.info({ missing: gaps }, 'the chat is off')
  const { model, url: providerUrl, prices: configured } = chat.provider
  const prices = priceOf({ model: model ?? '', providerUrl, routerUrl, configured })
  const shortest = parseChatRequest('{"messages":[{"role":"user","content":"?"}]}')
  if (prices === 'unknown' || !shortest.ok) return
  const inputBytes = largestInputBytes(shortest.request)
  const { withTools } = worstCase({ inputBytes, maxOutputTokens: chat.maxOutputTokens, prices })
  const { budgetPerDay } = chat.limits
  if (withTools <= budgetPerDay) return
  const amounts = { budgetMicroUsd: budgetPerDay, worstCaseMicroUsd: withTools }
  log.warn(amounts, 'DASH_CHAT_BUDGET_USD_PER_DAY holds no turn: the chat answers 429')
}
