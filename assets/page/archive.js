import { announce, make } from './dom.js'
import { checkInLog, readLog } from './archive-log.js'
import { hexOf, sha256 } from './check-proof.js'

/**
 * The page of an exported archive: lists publications and gaps, shows one publication and checks it.
 *
 * @typedef {{ publicationId: string, asOfDay: string, publishedAt: string, sha256: string, byteSize: number,
 *   ledger: 'v1' | 'versioned', seq: number }} Publication
 * @typedef {{ asOfDay: string, reason: string, attempts: number }} Gap
 * @typedef {{ publications: Publication[], gaps: Gap[] }} HistoryIndex
 * @typedef {{ title: string, url: string | null, discussionUrl: string | null, points: number,
 *   comments: number | null, publishedAt: string }} Item
 */

const COLUMNS = {
  popular: 'Popular',
  hackerNews: 'Hacker News',
  lobsters: 'Lobsters',
  lessWrong: 'LessWrong',
  hypeReplicate: 'Hype',
  midjourney: 'Images',
}

/** Files that were read, by path, so that index, checkpoint and entries stay those of one time. @type {Map<string, Promise<Uint8Array<ArrayBuffer>>>} */
const files = new Map()

/** Number of the last shown publication: an earlier one that is still loading must not replace it. */
let shown = 0

void start()

async function start() {
  try {
    /** @type {HistoryIndex} */
    const index = JSON.parse(new TextDecoder().decode(await readFile('index.json')))
    const byId = new Map(index.publications.map((each) => [each.publicationId, each]))
    const newest = index.publications.at(-1)
    showDays(index)
    const showSelected = () => {
      const publication = byId.get(decodeURIComponent(location.hash.slice(1))) ?? newest
      if (publication) void show(publication)
    }
    addEventListener('hashchange', () => {
      if (location.hash === '#main') return
      showSelected()
      element('publication-title').focus()
    })
    showSelected()
  } catch (error) {
    showProblem(error)
  }
}

/**
 * @param {string} path
 * @returns {Promise<Uint8Array<ArrayBuffer>>}
 */
function readFile(path) {
  const read = files.get(path) ?? fetchFile(path)
  files.set(path, read)
  read.catch(() => files.delete(path))
  return read
}

/** @param {string} path relative to the page */
async function fetchFile(path) {
  const response = await fetch(path)
  if (!response.ok) throw new Error(`the host responded with ${response.status} to ${path}`)
  return new Uint8Array(await response.arrayBuffer())
}

/** @param {HistoryIndex} index */
function showDays({ publications, gaps }) {
  const days = [
    ...publications.map((each) => ({ day: each.asOfDay, entry: publicationLink(each) })),
    ...gaps.map((gap) => ({
      day: gap.asOfDay,
      entry: make('span', {}, `${gap.asOfDay}: gap, ${reasonOf(gap)}`),
    })),
  ].sort((a, b) => (a.day < b.day ? 1 : -1))
  element('summary').textContent = `Publications: ${publications.length}. Gaps: ${gaps.length}.`
  /** @type {Map<string, Node[]>} */
  const months = new Map()
  for (const { day, entry } of days) {
    const month = day.slice(0, 7)
    months.set(month, [...(months.get(month) ?? []), make('li', {}, entry)])
  }
  element('days').replaceChildren(
    ...[...months].map(([month, entries], position) =>
      make('details', { open: position === 0 }, make('summary', {}, month), make('ul', {}, ...entries)),
    ),
  )
}

/** @param {Publication} publication */
function publicationLink({ publicationId, asOfDay, ledger }) {
  const href = `#${encodeURIComponent(publicationId)}`
  return make('a', { href }, ledger === 'v1' ? `${asOfDay} (legacy ledger)` : asOfDay)
}

/** @param {Gap} gap */
function reasonOf({ reason, attempts }) {
  return reason === 'missed' ? 'no attempt was made' : `${attempts} attempts failed`
}

/** @param {Publication} publication */
async function show(publication) {
  const own = (shown += 1)
  const { publicationId, asOfDay, publishedAt, sha256: name, byteSize } = publication
  const path = `objects/sha256/${name.slice(0, 2)}/${name}.json`
  element('problem').hidden = true
  element('publication').hidden = false
  element('publication-title').textContent = `Top Year as of ${asOfDay}`
  element('lists').replaceChildren(make('p', {}, 'Loading'))
  element('checks').replaceChildren()
  element('facts').replaceChildren(
    ...fact('Publication', publicationId),
    ...fact('Published', publishedAt),
    ...fact('SHA-256', make('code', {}, name)),
    ...fact('Size', `${byteSize} bytes`),
    ...fact('File', make('a', { href: path }, 'JSON')),
  )
  for (const link of element('days').querySelectorAll('a')) {
    if (link.hash === `#${encodeURIComponent(publicationId)}`) link.setAttribute('aria-current', 'true')
    else link.removeAttribute('aria-current')
  }
  let isListed = false
  try {
    const bytes = await readFile(path)
    const digest = hexOf(await sha256(bytes))
    if (own !== shown) return
    const isWhole = digest === name
    addChecks([{ what: 'the SHA-256 of the file is the one in the index', ok: isWhole }])
    // A damaged list is not shown.
    if (!isWhole) throw new Error(`${path} is damaged: its SHA-256 is ${digest}`)
    isListed = true
    element('lists').replaceChildren(...listsOf(JSON.parse(new TextDecoder().decode(bytes))))
    const checks = await checkInLog(await readLog(readFile), publication, digest, readFile)
    if (own !== shown) return
    addChecks(checks)
    const isProved = checks.every(({ ok }) => ok)
    announce(`Top Year as of ${asOfDay}, ${isProved ? 'all checks passed' : 'a check failed'}`)
  } catch (error) {
    if (own !== shown) return
    if (!isListed) element('lists').replaceChildren()
    showProblem(error)
  }
}

/** @param {{ what: string, ok: boolean }[]} checks */
function addChecks(checks) {
  element('checks').append(
    ...checks.map(({ what, ok }) => {
      const mark = make('span', { className: 'mark', ariaHidden: 'true' }, ok ? '✓' : '✗')
      const text = ok ? `Checked: ${what}.` : `Failed: it is not true that ${what}.`
      return make('li', { className: ok ? 'good' : 'bad' }, mark, text)
    }),
  )
}

/** @param {{ schemaVersion?: number, feed?: Record<string, unknown> }} publication */
function listsOf({ schemaVersion, feed = {} }) {
  if (schemaVersion !== 3)
    return [make('p', {}, 'This publication has an older layout. Its content is in the JSON file.')]
  return Object.entries(COLUMNS).flatMap(([name, title]) => {
    const items = feed[name]
    return Array.isArray(items) && items.length > 0 ? [column(name, title, items)] : []
  })
}

/**
 * @param {string} name
 * @param {string} title
 * @param {Item[]} items
 */
function column(name, title, items) {
  const id = `column-${name}`
  const list = make('ol', { className: 'items' }, ...items.map(itemOf))
  const section = make('section', { className: 'column' }, make('h3', { id }, title), list)
  section.setAttribute('aria-labelledby', id)
  return section
}

/** @param {Item} item */
function itemOf({ title, url, discussionUrl, points, comments, publishedAt }) {
  const heading = make('p', { className: 'title' }, linkTo(url ?? discussionUrl, title))
  const facts = [
    make('span', {}, `${points} points`),
    ...(comments === null ? [] : [linkTo(discussionUrl, `${comments} comments`)]),
    make('span', {}, publishedAt.slice(0, 10)),
  ]
  return make('li', { className: 'item' }, heading, make('p', { className: 'about' }, ...facts))
}

/**
 * A link to an http(s) URL; plain text for anything else.
 *
 * @param {string | null} url
 * @param {string} text
 */
function linkTo(url, text) {
  const shownText = make('bdi', {}, text)
  if (url === null || !/^https?:\/\//i.test(url) || !URL.canParse(url)) return shownText
  return make('a', { href: url, rel: 'noopener noreferrer nofollow ugc' }, shownText)
}

/**
 * @param {string} name
 * @param {string | Node} value
 */
function fact(name, value) {
  return [make('dt', {}, name), make('dd', {}, value)]
}

/** @param {unknown} error */
function showProblem(error) {
  const reason = globalThis.isSecureContext
    ? String(error instanceof Error ? error.message : error)
    : 'nothing can be checked, because this address is not secure; open the page over https'
  const problem = element('problem')
  problem.textContent = reason
  problem.hidden = false
  announce(reason)
}

/** @param {string} id */
function element(id) {
  const found = document.getElementById(id)
  if (!found) throw new Error(`the page has no element ${id}`)
  return found
}
