/** What every answer with HTML carries beside its policy (docs/page.md). */
const COMMON = {
  'cache-control': 'no-cache',
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

/** The policy's directives; all that is not named is forbidden. */
const POLICY = {
  'default-src': ["'none'"],
  'script-src': ["'self'"],
  'style-src': ["'self'"],
  'img-src': ["'self'"],
  'connect-src': ["'self'"],
  'base-uri': ["'none'"],
  'form-action': ["'self'"],
  'frame-ancestors': ["'none'"],
}

/** Sources a page needs beside those of every page, by directive. */
export type PolicyAdditions = Readonly<Record<string, readonly string[]>>

/** Headers of a page that needs nothing but this server. */
export const PAGE_HEADERS = pageHeaders({})

/** Headers of a page; what it needs from elsewhere is added to the policy by name. */
export function pageHeaders(additions: PolicyAdditions): Readonly<Record<string, string>> {
  const directives = new Map<string, readonly string[]>(Object.entries(POLICY))
  for (const [name, sources] of Object.entries(additions)) {
    directives.set(name, [...(directives.get(name) ?? []), ...sources])
  }
  const policy = [...directives].map(([name, sources]) => [name, ...sources].join(' ')).join('; ')
  return { ...COMMON, 'content-security-policy': policy }
}

export const HTML_TYPE = 'text/html; charset=utf-8'
