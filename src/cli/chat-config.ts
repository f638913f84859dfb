import type { ChatLimits } from '../domain/ports.ts'
import type { Prices } from '../domain/agent/model-call.ts'
import type { Settings } from './environment.ts'

/** What the chat agent needs to know. */
export interface ChatConfig {
  disabled: boolean
  itemDisabled: boolean
  /** Signs sessions; null: no session can be made. */
  sessionSecret: string | null
  sessionSeconds: number
  provider: {
    url: string
    key: string | null
    /** `auto`: the current free-model recommendation, through the routing service; null: none is set. */
    model: string | null
    api: 'responses' | 'chat'
    /** null: not known, so that only a model that is known to cost nothing may be asked. */
    prices: Prices | null
  }
  limits: ChatLimits
  maxOutputTokens: number
  pingMs: number
  firstEventMs: number
  idleMs: number
  turnMs: number
  /** null: nobody has to prove to be human. */
  verification: { siteKey: string; secret: string; url: string; widgetUrl: string } | null
}

/** The chat's part of the configuration. */
export function chatOf(settings: Settings): ChatConfig {
  const { DASH_CHAT_PRICE_INPUT: input, DASH_CHAT_PRICE_OUTPUT: output } = settings
  const { DASH_VERIFICATION_SITE_KEY: siteKey, DASH_VERIFICATION_SECRET: secret } = settings
  return {
    disabled: settings.DASH_CHAT_DISABLED,
    itemDisabled: settings.DASH_CHAT_ITEM_DISABLED,
    sessionSecret: settings.DASH_SESSION_SECRET ?? null,
    sessionSeconds: settings.DASH_CHAT_SESSION_SECONDS,
    provider: {
      url: settings.OPENAI_BASE_URL,
      key: settings.OPENAI_API_KEY ?? null,
      model: settings.DASH_CHAT_MODEL ?? null,
      api: settings.DASH_CHAT_API,
      prices:
        input === undefined || output === undefined
          ? null
          : { input, cached: settings.DASH_CHAT_PRICE_CACHED ?? input, output },
    },
    limits: {
      messagesPerSession: settings.DASH_CHAT_MESSAGES_PER_SESSION,
      messagesPerDay: settings.DASH_CHAT_MESSAGES_PER_DAY,
      burstPerMinute: settings.DASH_CHAT_BURST_PER_MINUTE,
      minGapMs: settings.DASH_CHAT_MIN_GAP_MS,
      maxOpenTurns: settings.DASH_CHAT_MAX_STREAMS,
      budgetPerDay: settings.DASH_CHAT_BUDGET_USD_PER_DAY,
      budgetShare: settings.DASH_CHAT_BUDGET_SHARE,
    },
    maxOutputTokens: settings.DASH_CHAT_MAX_OUTPUT_TOKENS,
    pingMs: settings.DASH_CHAT_PING_MS,
    firstEventMs: settings.DASH_CHAT_FIRST_EVENT_MS,
    idleMs: settings.DASH_CHAT_IDLE_MS,
    turnMs: settings.DASH_CHAT_TURN_MS,
    verification:
      siteKey === undefined || secret === undefined
        ? null
        : {
            siteKey,
            secret,
            url: settings.DASH_VERIFICATION_URL,
            widgetUrl: settings.DASH_VERIFICATION_WIDGET_URL,
          },
  }
}
