import { normalizeEscapes } from '../../domain/feed/canonical-url.ts'

/** The Robots Exclusion Protocol, RFC 9309 (docs/articles.md; docs/decisions/0015-article-fetching.md). */

/** Returns true if a robots.txt allows a path with its query, in the form `URL` provides. */
export type RobotsRules = (path: string) => boolean

/** Bytes of a robots.txt that are read; the rest is ignored. */
export const ROBOTS_MAX_BYTES = 500 * 1024

interface Rule {
  allow: boolean
  pattern: string
}

/**
 * Parses the rules of a robots.txt for one product token: those of every group that names the token, ignoring case;
 * without such a group, those of every group for `*`; otherwise none. Unknown lines are ignored and do not end a
 * group.
 */
export function parseRobots(text: string, token: string): RobotsRules {
  const ownRules: Rule[] = []
  const defaultRules: Rule[] = []
  let isTokenNamed = false
  // The current group as far as it concerns this token; other names are not stored, since there may be many.
  let inOwnGroup = false
  let inDefaultGroup = false
  let inAgents = false
  for (const line of text.replace(/^\uFEFF/, '').split(/\r\n|\r|\n/)) {
    const [, field = '', rawValue = ''] = /^[ \t]*([a-z-]+(?: agent)?)[ \t]*:([^#]*)/i.exec(line) ?? []
    const value = rawValue.trim()
    const name = field.toLowerCase()
    // Common misspellings.
    if (/^user[ -]?agent$/.test(name)) {
      const agent = (/^\*|^[A-Za-z_-]*/.exec(value)?.[0] ?? '').toLowerCase()
      inOwnGroup = agent === token || (inAgents && inOwnGroup)
      inDefaultGroup = agent === '*' || (inAgents && inDefaultGroup)
      isTokenNamed ||= inOwnGroup
      inAgents = true
    } else if (name === 'allow' || /^diss?all?ow$/.test(name)) {
      inAgents = false
      // An empty pattern matches nothing.
      if (value === '') continue
      // Only a final dollar sign is no character of paths.
      const pattern = normalize(value).replace(/\$(?!$)/g, escapeCharacter)
      const rule = { allow: name === 'allow', pattern }
      if (inOwnGroup) ownRules.push(rule)
      if (inDefaultGroup) defaultRules.push(rule)
    }
  }
  const rules = isTokenNamed ? ownRules : defaultRules
  return (path) => path === '/robots.txt' || isAllowed(rules, normalizePath(path))
}

/** Normalizes a path, whose asterisks and dollar signs are characters, to match patterns. */
function normalizePath(path: string): string {
  return normalize(path).replace(/[*$]/g, escapeCharacter)
}

/** Applies the longest matching rule; `allow` wins between equal lengths; a path without a match is allowed. */
function isAllowed(rules: readonly Rule[], path: string): boolean {
  let length = -1
  let allowed = true
  for (const { allow, pattern } of rules) {
    if (pattern.length < length || (pattern.length === length && allowed)) continue
    if (!matches(pattern, path)) continue
    length = pattern.length
    allowed = allow
  }
  return allowed
}

/**
 * Matches a pattern: `*` stands for any text, a final `$` for the end. Each part is searched once, so that no
 * pattern is slow.
 */
function matches(pattern: string, path: string): boolean {
  const isAnchored = pattern.endsWith('$')
  const [first = '', ...parts] = (isAnchored ? pattern.slice(0, -1) : pattern).split('*')
  if (!path.startsWith(first)) return false
  let position = first.length
  const last = parts.pop()
  for (const part of parts) {
    const found = path.indexOf(part, position)
    if (found < 0) return false
    position = found + part.length
  }
  if (last === undefined) return !isAnchored || position === path.length
  if (isAnchored) return path.length - last.length >= position && path.endsWith(last)
  return path.indexOf(last, position) >= 0
}

function escapeCharacter(character: string): string {
  const isEncoded = /[^*$']/.test(character)
  return isEncoded ? encodeURIComponent(character) : `%${character.charCodeAt(0).toString(16).toUpperCase()}`
}

/** Characters that `URL` escapes in some part of a URL. */
const ESCAPED = /[^\x21-\x7E]|["'<>\\^`{|}]/gu

/** Normalizes escapes: unreserved characters are unescaped, all others are escaped in upper case. */
function normalize(path: string): string {
  return normalizeEscapes(path.toWellFormed().replace(ESCAPED, escapeCharacter))
}

const FORBIDDING_DIRECTIVES: ReadonlySet<string> = new Set(['noindex', 'none', 'noarchive', 'nosnippet'])

/** Directives with a value. */
const SETTING_DIRECTIVES: ReadonlySet<string> = new Set(
  'max-snippet max-image-preview max-video-preview unavailable_after'.split(' '),
)

/**
 * Returns true if an `X-Robots-Tag` header or a robots `meta` element forbids indexing, storing or quoting a page:
 * `noindex`, `none`, `noarchive`, `nosnippet`, `max-snippet:0`. Directives for another token (`otherbot: none`) do
 * not count.
 */
export function forbidsKeeping(directives: string, token: string): boolean {
  let applies = true
  for (const part of directives.toLowerCase().split(',')) {
    const [, name, directive = ''] = /^\s*(?:([a-z_-]+)\s*:)?\s*(.*?)\s*$/.exec(part) ?? []
    const isSetting = name !== undefined && SETTING_DIRECTIVES.has(name)
    // A token also applies to the directives after it.
    if (name !== undefined && !isSetting) applies = name === token
    if (!applies) continue
    // Some pages separate them by spaces alone.
    const isForbidding = directive.split(/[\s;]+/).some((each) => FORBIDDING_DIRECTIVES.has(each))
    if (isSetting ? name === 'max-snippet' && directive === '0' : isForbidding) return true
  }
  return false
}
