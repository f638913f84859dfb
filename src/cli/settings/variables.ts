import { SESSION_MAX_SECONDS } from '../../domain/agent/credentials.ts'
import { BASE_URL } from '../../domain/models/catalogue.ts'
import { STANDARD_DATA_DIR, STANDARD_HOST, STANDARD_PORT } from './flags.ts'
import {
  addressRanges,
  baseUrl,
  databaseUrl,
  dollars,
  flag,
  folder,
  hostName,
  listenAddress,
  logLevel,
  logOrigin,
  minPoints,
  origins,
  pingUrl,
  port,
  serverUrl,
  serviceUrl,
  sessionSecret,
  share,
  siteUrl,
  storeUrl,
  text,
  token,
  webhookSecret,
  webhookUrl,
  wholeNumber,
  optional,
  preset,
  secret,
} from './rules.ts'
import type { Variable } from './rules.ts'

const milliseconds = wholeNumber(1, 3_600_000, 'whole milliseconds')
const messages = wholeNumber(0, 1_000_000)
const CHALLENGES = 'https://challenges.cloudflare.com/turnstile/v0'

const stores = {
  DASH_DATA_DIR: optional(folder, 'folder of `ledger.db`, `feed.db`, `state.db` and `objects/`', {
    unset: `\`${STANDARD_DATA_DIR}\``,
    question: 'Data folder?',
  }),
  DASH_DATABASE_URL: optional(
    serverUrl,
    'a libSQL server for every database: `libsql:`, `https:` or `http:` URL',
    { unset: 'files in the data folder' },
  ),
  DASH_DATABASE_AUTH_TOKEN: secret(text, 'bearer token of that server'),
  DASH_DATABASE_READ_TOKEN: secret(
    text,
    'read-only token of that server, for the chat agent; without it the agent uses the other token',
  ),
  DASH_LEDGER_URL: optional(databaseUrl, 'database of the ledger: `file:` URL or a libSQL server', {
    unset: '`DASH_DATABASE_URL`',
  }),
  DASH_FEED_URL: optional(databaseUrl, 'database of the feed: `file:` URL or a libSQL server', {
    unset: '`DASH_DATABASE_URL`',
  }),
  DASH_STATE_URL: optional(
    databaseUrl,
    'database of model evaluations, chat quotas and audit records: `file:` URL or a libSQL server',
    { unset: '`DASH_DATABASE_URL`' },
  ),
  DASH_STORE_URL: optional(
    storeUrl,
    'object store: `file:PATH` or `s3://BUCKET/PREFIX?endpoint=URL&region=R`',
    { unset: '`objects` in the data folder' },
  ),
  AWS_ACCESS_KEY_ID: secret(text, 'access key of an S3 store'),
  AWS_SECRET_ACCESS_KEY: secret(text, 'secret of that access key'),
}

const signedLog = {
  DASH_LOG_KEY_FILE: optional(
    text,
    'key file that signs checkpoints, created by `dash log-key new`; only the publisher needs it; without it, nothing is signed',
    { page: 'docs/signed-log.md' },
  ),
  DASH_LOG_ORIGIN: optional(logOrigin, 'name of the log; it must never change for an archive', {
    unset: '`DASH_BASE_URL` without its scheme, and `/tlog/year`',
  }),
}

const server = {
  HOST: preset(hostName, STANDARD_HOST, 'address `serve` listens on', { question: 'Address to listen on?' }),
  PORT: preset(port, STANDARD_PORT, 'port `serve` listens on; 0: any free port', { question: 'Port?' }),
  DASH_BASE_URL: optional(
    siteUrl,
    'public address of the server, used in links of RSS, Atom and JSON Feed and in the user agent',
    {
      unset: 'from `HOST` and `PORT`',
      question: 'Public address? (empty: this machine only)',
    },
  ),
  DASH_TRUSTED_PROXIES: optional(
    addressRanges,
    'addresses and ranges (CIDR), comma-separated, of proxies whose `X-Forwarded-For` is trusted',
    { question: 'Addresses of the proxy in front? (empty: none)' },
  ),
  DASH_ALLOWED_ORIGINS: optional(
    origins,
    'other origins, comma-separated, whose pages may chat, use `/mcp` and show the chat in a frame',
    { page: 'docs/embedding.md' },
  ),
  DASH_MCP_REQUESTS_PER_MINUTE: preset(
    messages,
    '120',
    'maximum requests per minute from one address to `/mcp`; 0: `/mcp` is off',
    { page: 'docs/mcp.md#over-http' },
  ),
  DASH_V1: preset(
    flag,
    '0',
    '`1` or `true` turns `/v1` for OpenAI clients on, which passes requests on with the key of each caller',
    { page: 'docs/v1.md' },
  ),
  DASH_DRAIN_SECONDS: preset(
    wholeNumber(0, 3_600, 'whole seconds'),
    '10',
    'seconds that open responses have to finish after SIGTERM',
  ),
  DASH_LOG_LEVEL: preset(logLevel, 'info', '`fatal`, `error`, `warn`, `info`, `debug`, `trace` or `silent`'),
}

const sources = {
  DASH_HN_URL: preset(serviceUrl, 'https://hacker-news.firebaseio.com/v0', "base of Hacker News' item API"),
  DASH_HN_SEARCH_URL: preset(serviceUrl, 'https://hn.algolia.com/api/v1', "base of Hacker News' search"),
  DASH_LOBSTERS_URL: preset(serviceUrl, 'https://lobste.rs', 'base of Lobsters'),
  DASH_LESSWRONG_URL: preset(serviceUrl, 'https://www.lesswrong.com/graphql', "LessWrong's GraphQL endpoint"),
  DASH_GITHUB_URL: preset(serviceUrl, 'https://api.github.com', "base of GitHub's API"),
  DASH_HUGGINGFACE_URL: preset(serviceUrl, 'https://huggingface.co/api', "base of Hugging Face's API"),
  DASH_REPLICATE_URL: preset(serviceUrl, 'https://api.replicate.com/v1', "base of Replicate's API"),
  DASH_REDDIT_URL: preset(
    serviceUrl,
    'https://www.reddit.com',
    'base of Reddit, for tokens and API; with the default, API requests go to `https://oauth.reddit.com`',
  ),
  GITHUB_TOKEN: secret(token, 'token for GitHub, which raises its rate limit', {
    page: 'docs/collecting.md#tokens',
  }),
  HF_TOKEN: secret(token, 'token for Hugging Face, which raises its rate limit'),
  REPLICATE_API_TOKEN: secret(token, 'token for Replicate; without it Replicate is skipped'),
  REDDIT_CLIENT_ID: secret(token, 'id of a Reddit application; without it Reddit is skipped'),
  REDDIT_CLIENT_SECRET: secret(token, 'secret of that application; without it Reddit is skipped'),
}

const articles = {
  DASH_ARTICLE_MIN_POINTS: preset(
    minPoints,
    'hn=100,lobsters=20,lesswrong=30',
    'minimum points of an item to read its article text, by source; other sources get no texts; a value replaces the whole default',
    { page: 'docs/importing.md#names' },
  ),
  DASH_ARTICLE_MAX_PER_RUN: preset(
    wholeNumber(0, 10_000),
    '200',
    'maximum items per run to read texts for, 0 to 10000; 0: none',
  ),
  DASH_ARTICLE_ALLOW_PRIVATE: optional(
    addressRanges,
    'addresses and ranges (CIDR), comma-separated, of private networks that articles may be read from; links from strangers can then reach these addresses on any port, so keep the list short',
    { page: 'docs/articles.md#safety' },
  ),
}

const models = {
  OPENROUTER_API_KEY: secret(
    token,
    'key of the model-routing service; without it `evaluate-models` refreshes metadata only',
    { question: 'Key of the model-routing service? (empty: none)' },
  ),
  OPENROUTER_BASE_URL: preset(
    baseUrl,
    BASE_URL,
    'API base of that service, without user, query or fragment; the key is sent only there',
  ),
  DASH_FREE_LLM_BASE_URL: preset(
    baseUrl,
    BASE_URL,
    'address published with a recommendation, to which readers send their keys; `OPENROUTER_BASE_URL` is never published',
    { page: 'docs/free-models.md' },
  ),
  DASH_MODEL_WEBHOOK_URL: secret(
    webhookUrl,
    'address to which `evaluate-models` posts each change of the ranking; needs `DASH_MODEL_WEBHOOK_SECRET`',
    { page: 'docs/free-models.md#webhook' },
  ),
  DASH_MODEL_WEBHOOK_SECRET: secret(
    webhookSecret,
    'secret that signs these requests as in Standard Webhooks: `whsec_` and 24 to 64 bytes in base64',
    { page: 'docs/free-models.md#webhook' },
  ),
  DASH_MODEL_WEBHOOK_ALLOW_PRIVATE: optional(
    addressRanges,
    'addresses and ranges (CIDR), comma-separated, of private networks that the webhook may reach, on any port',
    { page: 'docs/free-models.md#webhook' },
  ),
}

const chat = {
  DASH_SESSION_SECRET: secret(
    sessionSecret,
    'secret that signs chat sessions, at least 32 bytes; a change ends every session; without it the chat is off',
  ),
  DASH_CHAT_DISABLED: preset(flag, '0', '`1` or `true` turns the chat off'),
  DASH_CHAT_ITEM_DISABLED: preset(flag, '0', '`1` or `true` turns the chat about one item off'),
  OPENAI_API_KEY: secret(
    token,
    "key of the chat's model provider; a provider on this machine (loopback) needs none",
    {
      question: 'API key of the provider? (empty: none)',
    },
  ),
  OPENAI_BASE_URL: preset(
    baseUrl,
    'https://api.openai.com/v1',
    'API base of that provider (chat completions), without user, query or fragment; the key is sent only there',
    { question: 'API base URL of the provider?' },
  ),
  DASH_CHAT_MODEL: optional(token, 'model of the chat; `auto`: the recommended free model', {
    question: 'Model id?',
  }),
  DASH_CHAT_PRICE_INPUT: optional(
    dollars,
    'US dollars per million input tokens; needs `DASH_CHAT_PRICE_OUTPUT`',
    { question: 'US dollars per million input tokens? (empty: set it later)' },
  ),
  DASH_CHAT_PRICE_CACHED: optional(dollars, 'US dollars per million cached input tokens', {
    unset: 'price of input',
  }),
  DASH_CHAT_PRICE_OUTPUT: optional(
    dollars,
    'US dollars per million output tokens; needs `DASH_CHAT_PRICE_INPUT`',
    { question: 'US dollars per million output tokens?', suggestion: '0' },
  ),
}

const chatLimits = {
  DASH_CHAT_BUDGET_USD_PER_DAY: preset(dollars, '1', 'budget of the chat for one UTC day, in US dollars'),
  DASH_CHAT_BUDGET_SHARE: preset(
    share,
    '0.2',
    'share of that budget one address may spend; with the model `auto`, its share of the daily requests',
  ),
  DASH_CHAT_MESSAGES_PER_SESSION: preset(messages, '20', 'maximum messages per session'),
  DASH_CHAT_MESSAGES_PER_DAY: preset(messages, '60', 'maximum messages per address and UTC day'),
  DASH_CHAT_BURST_PER_MINUTE: preset(messages, '10', 'maximum messages per address and minute'),
  DASH_CHAT_MIN_GAP_MS: preset(
    wholeNumber(0, 3_600_000, 'whole milliseconds'),
    '1500',
    'minimum milliseconds between two messages of a session',
  ),
  DASH_CHAT_SESSION_SECONDS: preset(
    wholeNumber(1, SESSION_MAX_SECONDS, 'whole seconds'),
    '1800',
    'lifetime of a session in seconds',
  ),
  DASH_CHAT_MAX_OUTPUT_TOKENS: preset(
    wholeNumber(16, 100_000),
    '1000',
    'maximum output tokens of a model in one round',
  ),
  DASH_CHAT_MAX_STREAMS: preset(
    wholeNumber(1, 100_000),
    '200',
    'maximum open answers of one server; one IPv4 address or IPv6 /48 gets a quarter, an IPv6 /32 half',
  ),
  DASH_CHAT_PING_MS: preset(
    milliseconds,
    '15000',
    'milliseconds without an event before a ping is sent; clients give up after 45000 of silence',
  ),
  DASH_CHAT_FIRST_EVENT_MS: preset(milliseconds, '20000', "maximum milliseconds until a model's first event"),
  DASH_CHAT_IDLE_MS: preset(
    milliseconds,
    '30000',
    'maximum milliseconds between two later events of a model',
  ),
  DASH_CHAT_TURN_MS: preset(milliseconds, '90000', 'maximum milliseconds of an answer'),
}

const verification = {
  DASH_VERIFICATION_SITE_KEY: optional(
    token,
    'public key of the human challenge; with `DASH_VERIFICATION_SECRET`, every session needs the challenge',
  ),
  DASH_VERIFICATION_SECRET: secret(token, 'secret of the human challenge'),
  DASH_VERIFICATION_URL: preset(
    serviceUrl,
    `${CHALLENGES}/siteverify`,
    'address that checks solutions of the challenge',
  ),
  DASH_VERIFICATION_WIDGET_URL: preset(
    serviceUrl,
    `${CHALLENGES}/api.js`,
    'script of the challenge; the page loads it only if the challenge is on',
  ),
}

const monitoring = {
  DASH_METRICS_ADDRESS: optional(
    listenAddress,
    '`HOST:PORT` on which `serve` offers `/metrics`; without it metrics are off',
    { page: 'docs/monitoring.md#metrics' },
  ),
  DASH_HEALTHCHECK_PING_URL: secret(
    pingUrl,
    'address that is pinged at the start and the end of each job, as healthchecks.io expects; `{job}` in it is replaced by the job name',
    { page: 'docs/monitoring.md#pings' },
  ),
}

const program = {
  XDG_STATE_HOME: optional(
    text,
    'state folder; `dash chat` saves questions there in `dash/chat-history`, and audits of hosts keep checkpoints in `dash/logs`; a relative path is ignored',
    { unset: '`~/.local/state`' },
  ),
}

/**
 * Every variable the program reads: its rule, its default and its meaning. The configuration, docs/configuration.md,
 * `dash init`, `dash config` and `dash doctor` derive from it.
 */
export const VARIABLES = {
  ...stores,
  ...signedLog,
  ...server,
  ...sources,
  ...articles,
  ...models,
  ...chat,
  ...chatLimits,
  ...verification,
  ...monitoring,
  ...program,
}

export type VariableName = keyof typeof VARIABLES

const GROUPS: Readonly<Record<string, Readonly<Record<string, Variable>>>> = {
  Stores: stores,
  'Signed log': signedLog,
  Server: server,
  Sources: sources,
  'Article texts': articles,
  'Free models': models,
  Chat: chat,
  'Limits of the chat': chatLimits,
  'Human verification': verification,
  Monitoring: monitoring,
  'The program itself': program,
}

/** A variable with its name and the title of its group. */
export interface NamedVariable extends Variable {
  name: VariableName
  group: string
}

/** Every variable, in the order of pages and files. */
export const namedVariables: readonly NamedVariable[] = Object.entries(GROUPS).flatMap(([group, variables]) =>
  Object.entries(variables).map(([name, variable]) => ({ ...variable, group, name: name as VariableName })),
)

/** Secrets, each of which may also stand in a file that `<NAME>_FILE` names. */
export const SECRETS: readonly VariableName[] = namedVariables
  .filter((variable) => variable.secret)
  .map(({ name }) => name)

/** The lines of something that shows variables, under the title of each group. */
export function inGroups<T extends { group: string }>(
  items: readonly T[],
): [title: string, members: readonly T[]][] {
  return [...new Set(items.map(({ group }) => group))].map((title) => [
    title,
    items.filter(({ group }) => group === title),
  ])
}

/** Returns the `DASH_` variables that do not exist, such as misspelt ones and those in lower case. */
export function unknownNames(values: NodeJS.Dict<string>): string[] {
  const known = new Set<string>([
    ...namedVariables.map(({ name }) => name),
    ...SECRETS.map((name) => `${name}_FILE`),
    // Caddy reads this one from the env file that it shares with compose.yaml.
    'DASH_DOMAIN',
  ])
  return Object.keys(values).filter((name) => /^dash_/i.test(name) && !known.has(name))
}
