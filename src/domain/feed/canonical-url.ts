/**
 * URLs without the parts that do not change the page (docs/api.md): items with the same canonical URL belong to one
 * discussion.
 */

/** Tracking parameters. */
const TRACKING =
  /^(utm_\w+|fbclid|gclid|dclid|gbraid|wbraid|msclkid|yclid|twclid|igshid|igsh|mc_cid|mc_eid|_hsenc|_hsmi|mkt_tok|ref_src|ref_url|cmpid|smid|smtyp|ncid|spm|vero_id|oly_anon_id|oly_enc_id|at_medium|at_campaign|guccounter|guce_referrer|guce_referrer_sig|sr_share|unlocked_article_code)$/i

/** Mirror hosts and their primary host. */
const SAME_HOST: Readonly<Record<string, string>> = {
  'm.youtube.com': 'youtube.com',
  'music.youtube.com': 'youtube.com',
  'mobile.twitter.com': 'twitter.com',
  'm.twitter.com': 'twitter.com',
  'x.com': 'twitter.com',
  'mobile.x.com': 'twitter.com',
  'old.reddit.com': 'reddit.com',
  'np.reddit.com': 'reddit.com',
  'm.reddit.com': 'reddit.com',
  'new.reddit.com': 'reddit.com',
  'export.arxiv.org': 'arxiv.org',
  'm.facebook.com': 'facebook.com',
  'mobile.nytimes.com': 'nytimes.com',
  'amp.theguardian.com': 'theguardian.com',
}

/** Fragments that select a page: older applications route by fragment. */
const FRAGMENT_IS_PAGE = /^#!?\//

/**
 * Canonical form of a page's URL, for comparison only: it need not open.
 *
 * Dropped or folded: scheme, `www.`, case of the host, default ports, user and password, tracking parameters, the order
 * of parameters, fragments (except routes, `#/…` and `#!…`), trailing slashes, `index.html`, known mobile mirrors,
 * `/amp` endings, needless escapes, forms and versions of arXiv papers, short forms of YouTube videos, the case and the
 * open tab of a GitHub repository, the name before the number of a tweet, and the words after the number of a Reddit
 * thread. Everything else is kept.
 *
 * @param url an absolute http(s) URL
 * @returns null when it cannot be parsed or is not http(s)
 */
export function canonicalUrl(url: string): string | null {
  const parsed = parse(url)
  if (parsed === null) return null
  const bare = parsed.hostname.replace(/\.+$/, '').replace(/^(www\d?\.)+(?=[^.]+\.[^.])/, '')
  if (bare === '') return null
  const host = primaryHost(bare)
  const port = parsed.port === '' || parsed.port === '80' || parsed.port === '443' ? '' : `:${parsed.port}`
  const params = [...parsed.searchParams].filter(([name]) => !TRACKING.test(name))
  const path = pagePath(normalizeEscapes(parsed.pathname))
  const known = knownPage(host, path, new Map(params))
  if (known !== null) return known
  const query = params
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
    .sort()
    .join('&')
  const fragment = FRAGMENT_IS_PAGE.test(parsed.hash) ? parsed.hash : ''
  return `${host}${port}${path}${query === '' ? '' : `?${query}`}${fragment}`
}

/** Accepts canonical URLs too, which have no scheme. */
function parse(url: string): URL | null {
  try {
    const parsed = new URL(/^[a-z][a-z0-9+.-]*:\/\//i.test(url) ? url : `https://${url}`)
    return /^https?:$/.test(parsed.protocol) && parsed.hostname !== '' ? parsed : null
  } catch {
    return null
  }
}

function primaryHost(host: string): string {
  return SAME_HOST[host] ?? host.replace(/^([a-z-]+)\.m\.(wikipedia|wiktionary)\.org$/, '$1.$2.org')
}

/** The path without an ending that names the same page. */
function pagePath(pathname: string): string {
  let path = pathname
  for (;;) {
    const shorter = path
      .replace(/\/+$/, '')
      .replace(/\/(index|default)\.(html?|php|aspx?)$/i, '')
      .replace(/(?<=\/[^/]+)\/amp$/i, '')
    if (shorter === path) return path
    path = shorter
  }
}

/** Unescapes unreserved characters, and writes other escapes in upper case. */
export function normalizeEscapes(path: string): string {
  return path.replace(/%[0-9a-f]{2}/gi, (escape) => {
    const character = String.fromCharCode(Number.parseInt(escape.slice(1), 16))
    return /[A-Za-z0-9._~-]/.test(character) ? character : escape.toUpperCase()
  })
}

/** Canonical forms of sites that have several addresses for a page. */
function knownPage(host: string, path: string, params: ReadonlyMap<string, string>): string | null {
  if (host === 'arxiv.org') {
    const paper =
      /^\/(?:abs|pdf|html)\/(\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?\/\d{7})(?:v\d+)?(?:\.pdf)?$/.exec(path)
    return paper ? `arxiv.org/abs/${paper[1]}` : null
  }
  if (host === 'youtube.com' || host === 'youtu.be') {
    const short = (host === 'youtu.be' ? /^\/([\w-]{11})$/ : /^\/(?:shorts|live|embed|v)\/([\w-]{11})$/).exec(
      path,
    )
    const video = short?.[1] ?? (path === '/watch' && host === 'youtube.com' ? params.get('v') : undefined)
    return video !== undefined && /^[\w-]{11}$/.test(video) ? `youtube.com/watch?v=${video}` : null
  }
  if (host === 'github.com') {
    const repository = /^\/[^/]+\/[^/]+$/.test(path) && [...params.keys()].every((name) => name === 'tab')
    return repository ? `github.com${path.toLowerCase().replace(/(?<=\w)\.git$/, '')}` : null
  }
  if (host === 'twitter.com') {
    const post = /^\/(?:\w+|i\/web)\/status\/(\d+)(?:\/|$)/.exec(path)
    return post?.[1] === undefined ? null : `twitter.com/i/status/${post[1]}`
  }
  if (host === 'reddit.com') {
    const thread = /^(\/r\/[^/]+\/comments\/\w+)(?:\/[^/]*)?$/.exec(path)
    return thread?.[1] === undefined ? null : `reddit.com${thread[1].toLowerCase()}`
  }
  return null
}
