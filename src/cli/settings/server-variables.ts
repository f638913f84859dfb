import { addressRangesSetting } from './article-settings.ts'
import { originsSetting } from './origin-settings.ts'
import { baseUrl, logLevel, port, text, wholeNumber } from './rules.ts'
import { defaulted, optional } from './variable.ts'

/** How the server is reached, and what the program leaves behind. */
export const SERVER_VARIABLES = {
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
