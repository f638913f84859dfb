import { z } from 'zod'
import { baseUrl, dollars, flag, httpUrl, sessionSecret, share, token, wholeNumber } from './rules.ts'
import { defaulted, optional } from './variable.ts'

const milliseconds = wholeNumber(1, 3_600_000, 'milliseconds')
const messages = wholeNumber(0, 1_000_000)

/** The chat agent: its model, its limits, and who may ask it. */
export const CHAT_VARIABLES = {
  DASH_SESSION_SECRET: optional(sessionSecret, {
    group: 'chat',
    meaning:
      'signs chat sessions, at least 32 bytes; another one ends every session; without it there is no chat',
    secret: true,
  }),
  DASH_CHAT_DISABLED: defaulted(flag, '0', {
    group: 'chat',
    meaning: '`1` or `true` switches the chat off',
  }),
  DASH_CHAT_ITEM_DISABLED: defaulted(flag, '0', {
    group: 'chat',
    meaning: '`1` or `true` switches the chat about one item off',
  }),
  OPENAI_API_KEY: optional(token, {
    group: 'chat',
    meaning: "key of the chat's model provider; a provider on loopback needs none",
    secret: true,
  }),
  OPENAI_BASE_URL: defaulted(baseUrl, 'https://api.openai.com/v1', {
    group: 'chat',
    meaning: 'API base of that provider, without user, query or fragment; the key is sent to nowhere else',
  }),
  DASH_CHAT_MODEL: optional(token, {
    group: 'chat',
    meaning: 'model the chat runs on; `auto`: the current free-model recommendation',
  }),
  DASH_CHAT_API: defaulted(z.enum(['responses', 'chat']), 'responses', {
    group: 'chat',
    meaning: '`responses`, or `chat` for a provider that only knows chat completions',
  }),
  DASH_CHAT_PRICE_INPUT: optional(dollars, {
    group: 'chat',
    meaning: 'US dollars per million tokens read; with `DASH_CHAT_PRICE_OUTPUT`',
  }),
  DASH_CHAT_PRICE_CACHED: optional(dollars, {
    group: 'chat',
    meaning: "US dollars per million tokens read from the provider's cache",
    unset: 'price of input',
  }),
  DASH_CHAT_PRICE_OUTPUT: optional(dollars, {
    group: 'chat',
    meaning: 'US dollars per million tokens written; with `DASH_CHAT_PRICE_INPUT`',
  }),
  DASH_CHAT_BUDGET_USD_PER_DAY: defaulted(dollars, '1', {
    group: 'chat-limits',
    meaning: 'what the chat may cost on one UTC day',
  }),
  DASH_CHAT_BUDGET_SHARE: defaulted(share, '0.2', {
    group: 'chat-limits',
    meaning:
      'share of that budget one address may spend; with the model `auto`, of the daily requests of the account',
  }),
  DASH_CHAT_MESSAGES_PER_SESSION: defaulted(messages, '20', {
    group: 'chat-limits',
    meaning: 'messages of one session',
  }),
  DASH_CHAT_MESSAGES_PER_DAY: defaulted(messages, '60', {
    group: 'chat-limits',
    meaning: 'messages of one address on one UTC day',
  }),
  DASH_CHAT_BURST_PER_MINUTE: defaulted(messages, '10', {
    group: 'chat-limits',
    meaning: 'messages of one address within a minute',
  }),
  DASH_CHAT_MIN_GAP_MS: defaulted(wholeNumber(0, 3_600_000, 'milliseconds'), '1500', {
    group: 'chat-limits',
    meaning: 'least time between two messages of a session',
  }),
  DASH_CHAT_SESSION_SECONDS: defaulted(wholeNumber(1, 86_400, 'seconds'), '1800', {
    group: 'chat-limits',
    meaning: 'life of a session',
  }),
  DASH_CHAT_MAX_OUTPUT_TOKENS: defaulted(wholeNumber(16, 100_000), '1000', {
    group: 'chat-limits',
    meaning: 'most tokens a model may write in one round',
  }),
  DASH_CHAT_MAX_STREAMS: defaulted(wholeNumber(1, 100_000), '200', {
    group: 'chat-limits',
    meaning: 'most open answers of one server; a quarter of them for one IPv4 address or one IPv6 /48',
  }),
  DASH_CHAT_PING_MS: defaulted(milliseconds, '15000', {
    group: 'chat-limits',
    meaning: 'longest silence of an answer before a ping',
  }),
  DASH_CHAT_FIRST_EVENT_MS: defaulted(milliseconds, '20000', {
    group: 'chat-limits',
    meaning: "longest wait for a model's first event",
  }),
  DASH_CHAT_IDLE_MS: defaulted(milliseconds, '30000', {
    group: 'chat-limits',
    meaning: 'longest silence of a model after that',
  }),
  DASH_CHAT_TURN_MS: defaulted(milliseconds, '90000', {
    group: 'chat-limits',
    meaning: 'longest time of an answer',
  }),
  DASH_VERIFICATION_SITE_KEY: optional(token, {
    group: 'verification',
    meaning: 'public key of the human challenge; with `DASH_VERIFICATION_SECRET`: every session needs it',
  }),
  DASH_VERIFICATION_SECRET: optional(token, { group: 'verification', meaning: 'its secret', secret: true }),
  DASH_VERIFICATION_URL: defaulted(httpUrl, 'https://challenges.cloudflare.com/turnstile/v0/siteverify', {
    group: 'verification',
    meaning: 'where answers to the challenge are checked',
  }),
  DASH_VERIFICATION_WIDGET_URL: defaulted(httpUrl, 'https://challenges.cloudflare.com/turnstile/v0/api.js', {
    group: 'verification',
    meaning: 'script of the challenge, loaded by the page only while the challenge is on',
  }),
} as const
