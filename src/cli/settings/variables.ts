import { z } from 'zod'
import { BASE_URL } from '../../domain/models/catalogue.ts'
import {
  GROUPS,
  addressRangesSetting,
  baseUrl,
  databaseUrl,
  defaulted,
  dollars,
  flag,
  httpUrl,
  listenAddressSetting,
  logLevel,
  minPointsSetting,
  optional,
  originsSetting,
  pingUrlSetting,
  port,
  serverUrl,
  sessionSecret,
  share,
  storeUrl,
  text,
  token,
  wholeNumber,
} from './rules.ts'
import type { Variable } from './rules.ts'

const milliseconds = wholeNumber(1, 3_600_000, 'milliseconds')
const messages = wholeNumber(0, 1_000_000)

/** The chat agent: its model, its limits, and who may ask it. */
const CHAT_VARIABLES = {
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

/** Who is told how the server and the jobs do. */
const MONITORING_VARIABLES = {
  DASH_METRICS_ADDRESS: optional(listenAddressSetting, {
    group: 'monitoring',
    meaning: '`HOST:PORT` of the listener on which `serve` answers `/metrics`; without it nothing listens',
    page: 'docs/monitoring.md#metrics',
  }),
  DASH_METRICS_TEXTFILE_DIR: optional(text, {
    group: 'monitoring',
    meaning:
      'folder in which each job leaves its metrics in a file, for the textfile collector of a node exporter',
    page: 'docs/monitoring.md#textfile',
  }),
  DASH_HEALTHCHECK_PING_URL: optional(pingUrlSetting, {
    group: 'monitoring',
    meaning:
      'address of a check of the kind of healthchecks.io, told of the start and the end of each job; `{job}` in it stands for the name of the job',
    page: 'docs/monitoring.md#pings',
    secret: true,
  }),
} as const

/** How the server is reached, and what the program leaves behind. */
const SERVER_VARIABLES = {
  HOST: defaulted(text, '127.0.0.1', {
    group: 'server',
    meaning: 'address `serve` listens on',
    flag: '--host',
  }),
  PORT: defaulted(port, '3000', {
    group: 'server',
    meaning: 'port `serve` listens on, 0 for a free one',
    flag: '--port',
  }),
  DASH_BASE_URL: optional(baseUrl, {
    group: 'server',
    meaning:
      'address the server is reached at from outside: in links of RSS, Atom and JSON Feed, and in the user agent',
    unset: 'from `HOST` and `PORT`',
  }),
  DASH_TRUSTED_PROXIES: optional(addressRangesSetting, {
    group: 'server',
    meaning: 'addresses and ranges (CIDR), comma-separated, of proxies whose `X-Forwarded-For` is believed',
  }),
  DASH_ALLOWED_ORIGINS: optional(originsSetting, {
    group: 'server',
    meaning: "origins, comma-separated, whose pages may chat and use `/mcp` beside the server's own",
  }),
  DASH_MCP_REQUESTS_PER_MINUTE: defaulted(wholeNumber(0, 1_000_000), '120', {
    group: 'server',
    meaning: 'most requests of one address to `/mcp` in a minute; 0: it is not offered',
    page: 'docs/mcp.md#over-http',
  }),
  DASH_DRAIN_SECONDS: defaulted(wholeNumber(0, 3_600, 'seconds'), '10', {
    group: 'server',
    meaning: 'time open answers have to finish after SIGTERM',
  }),
  DASH_LOG_LEVEL: defaulted(logLevel, 'info', {
    group: 'server',
    meaning: '`fatal`, `error`, `warn`, `info`, `debug`, `trace` or `silent`',
  }),
  XDG_STATE_HOME: optional(text, {
    group: 'program',
    meaning:
      'below it `dash chat` remembers questions, in `dash/chat-history`; a relative path counts as none',
    unset: '`~/.local/state`',
  }),
} as const

/** What is collected, from where, and how models are evaluated. */
const SOURCE_VARIABLES = {
  DASH_HN_URL: defaulted(httpUrl, 'https://hacker-news.firebaseio.com/v0', {
    group: 'sources',
    meaning: "base of Hacker News' item API",
  }),
  DASH_HN_SEARCH_URL: defaulted(httpUrl, 'https://hn.algolia.com/api/v1', {
    group: 'sources',
    meaning: "base of Hacker News' search",
  }),
  DASH_LOBSTERS_URL: defaulted(httpUrl, 'https://lobste.rs', {
    group: 'sources',
    meaning: 'base of Lobsters',
  }),
  DASH_LESSWRONG_URL: defaulted(httpUrl, 'https://www.lesswrong.com/graphql', {
    group: 'sources',
    meaning: "LessWrong's GraphQL endpoint",
  }),
  DASH_GITHUB_URL: defaulted(httpUrl, 'https://api.github.com', {
    group: 'sources',
    meaning: "base of GitHub's API",
  }),
  DASH_HUGGINGFACE_URL: defaulted(httpUrl, 'https://huggingface.co/api', {
    group: 'sources',
    meaning: "base of Hugging Face's API",
  }),
  DASH_REPLICATE_URL: defaulted(httpUrl, 'https://api.replicate.com/v1', {
    group: 'sources',
    meaning: "base of Replicate's API",
  }),
  DASH_REDDIT_URL: defaulted(httpUrl, 'https://www.reddit.com', {
    group: 'sources',
    meaning: 'base of Reddit, which gives and (the default: `https://oauth.reddit.com`) takes its tokens',
  }),
  GITHUB_TOKEN: optional(token, {
    group: 'sources',
    meaning: 'for collecting from GitHub at a higher rate',
    secret: true,
    page: 'docs/collecting.md#tokens',
  }),
  HF_TOKEN: optional(token, { group: 'sources', meaning: 'likewise from Hugging Face', secret: true }),
  REPLICATE_API_TOKEN: optional(token, {
    group: 'sources',
    meaning: 'without it Replicate is skipped',
    secret: true,
  }),
  REDDIT_CLIENT_ID: optional(token, {
    group: 'sources',
    meaning: "an application's id; without it Reddit is skipped",
    secret: true,
  }),
  REDDIT_CLIENT_SECRET: optional(token, {
    group: 'sources',
    meaning: 'its secret; likewise',
    secret: true,
  }),
  DASH_ARTICLE_MIN_POINTS: defaulted(minPointsSetting, 'hn=100,lobsters=20,lesswrong=30', {
    group: 'articles',
    meaning:
      'points from which on an item is given a text, by source; unnamed sources get none; a value replaces the default whole',
    page: 'docs/importing.md#names',
  }),
  DASH_ARTICLE_MAX_PER_RUN: defaulted(wholeNumber(0, 10_000), '200', {
    group: 'articles',
    meaning: 'items one run reads texts for, 0 to 10000; 0 reads none',
  }),
  DASH_ARTICLE_ALLOW_PRIVATE: optional(addressRangesSetting, {
    group: 'articles',
    meaning:
      "addresses and ranges (CIDR), comma-separated, that pages may be read from although they are not public; strangers' links then reach what it names, on any port: name as little as possible",
    page: 'docs/articles.md#safety',
  }),
  OPENROUTER_API_KEY: optional(token, {
    group: 'models',
    meaning: 'key of the model-routing service; without it `evaluate-models` refreshes metadata only',
    secret: true,
  }),
  OPENROUTER_BASE_URL: defaulted(baseUrl, BASE_URL, {
    group: 'models',
    meaning: 'API base of that service, without user, query or fragment; the key is sent to nowhere else',
  }),
  DASH_FREE_LLM_BASE_URL: defaulted(baseUrl, BASE_URL, {
    group: 'models',
    meaning:
      'address published with a recommendation, to which readers send their keys; `OPENROUTER_BASE_URL` is never published',
    page: 'docs/free-models.md',
  }),
} as const

/** Where everything is kept. */
const STORE_VARIABLES = {
  DASH_DATA_DIR: optional(text, {
    group: 'stores',
    meaning: 'folder of `ledger.db`, `feed.db`, `state.db` and `objects/`',
    unset: '`./dash-data`',
    flag: '--data-dir',
  }),
  DASH_DATABASE_URL: optional(serverUrl, {
    group: 'stores',
    meaning: 'a libSQL server for every database: `libsql:`, `https:` or `http:` URL',
    unset: 'files in the data folder',
  }),
  DASH_DATABASE_AUTH_TOKEN: optional(text, {
    group: 'stores',
    meaning: 'bearer token of that server',
    secret: true,
  }),
  DASH_DATABASE_READ_TOKEN: optional(text, {
    group: 'stores',
    meaning:
      'token of that server that may only read, for the chat agent; without it the agent uses the other',
    secret: true,
  }),
  DASH_LEDGER_URL: optional(databaseUrl, {
    group: 'stores',
    meaning: 'the ledger alone: `file:` URL or a libSQL server',
    unset: '`DASH_DATABASE_URL`',
  }),
  DASH_FEED_URL: optional(databaseUrl, {
    group: 'stores',
    meaning: 'the feed alone, likewise',
    unset: '`DASH_DATABASE_URL`',
  }),
  DASH_STATE_URL: optional(databaseUrl, {
    group: 'stores',
    meaning: "evaluations of models, the chat's quotas and records of audits, likewise",
    unset: '`DASH_DATABASE_URL`',
  }),
  DASH_STORE_URL: optional(storeUrl, {
    group: 'stores',
    meaning: 'object store: `file:PATH` or `s3://BUCKET/PREFIX?endpoint=URL&region=R`',
    unset: '`objects` in the data folder',
  }),
  AWS_ACCESS_KEY_ID: optional(text, { group: 'stores', meaning: 'key of an S3 store', secret: true }),
  AWS_SECRET_ACCESS_KEY: optional(text, { group: 'stores', meaning: 'its secret', secret: true }),
} as const

/**
 * Every variable the program reads: the one place that knows its rule, its default and what it does. The rules of a
 * configuration, docs/configuration.md, `dash init` and `dash config` are all made from it.
 */
export const VARIABLES = {
  ...STORE_VARIABLES,
  ...SERVER_VARIABLES,
  ...SOURCE_VARIABLES,
  ...CHAT_VARIABLES,
  ...MONITORING_VARIABLES,
} as const

type VariableName = keyof typeof VARIABLES

/** A variable and its name. */
export interface NamedVariable extends Variable {
  name: VariableName
}

/** Every variable, in the order of its group. */
export const namedVariables: readonly NamedVariable[] = Object.keys(GROUPS).flatMap((group) =>
  Object.entries<Variable>(VARIABLES)
    .filter(([, variable]) => variable.group === group)
    .map(([name, variable]) => ({ ...variable, name: name as VariableName })),
)
