import { minuteSeenFrom } from '../../../domain/time.ts'
import { fetchPage, make, store, stored } from './dom.ts'

/** Storage of the publications that this browser saw: the newest one, and the newest one of the visit before. */
const STORED = 'dash-seen'

/** Name of a publication: position in its ledger and digest, so that no position of another archive is mistaken for it. */
const NAME = /^\d{1,9}-[0-9a-f]{64}$/

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/** Publication time of the one seen at the last visit; null for a first visit. */
let lastVisit: Promise<string | null> = Promise.resolve(null)

/** Shows what changed since the last visit instead of since yesterday, and counts it in the title. */
export function setUpSince() {
  const panel = document.querySelector('#since .since')
  const newest = panel?.getAttribute('data-newest') ?? ''
  if (!panel || !NAME.test(newest)) return
  const { before, isNew } = lastSeen(STORED, newest, NAME)
  if (before === null) return
  lastVisit = fetchSince(before).then((response) => {
    if (response === null) return null
    response.removeAttribute('open')
    panel.replaceWith(response)
    if (isNew) countInTitle(response)
    return response.getAttribute('data-base-at')
  })
}

/** The panel of changes since a publication; null if the server does not know that or cannot be reached. */
async function fetchSince(name: string): Promise<Element | null> {
  const panel = (await fetchPage(`/since?since=${name}`))?.querySelector('#since .since')
  return panel?.getAttribute('data-base') === name ? document.adoptNode(panel) : null
}

/** Counts the changes in the title until the panel is opened. */
function countInTitle(panel: Element) {
  const count = Number(panel.getAttribute('data-count'))
  if (!(count > 0)) return
  const prefix = `(${count}) `
  document.title = prefix + document.title
  panel.addEventListener('toggle', () => {
    // The parser of the response reports an opening too.
    if (panel.hasAttribute('open') && document.title.startsWith(prefix))
      document.title = document.title.slice(prefix.length)
  })
}

/** Marks the rows of Popular against the publication of the last visit. @param ranks path of the ranks */
export async function setUpMarks(ranks: string) {
  const at = await lastVisit
  if (at === null) return
  try {
    const response = await fetch(`${ranks}?at=${at}&count=1`)
    const { publications, items } = await response.json()
    const popular: [number][] | null = publications[0]?.popular ?? null
    if (popular === null) return
    const before = new Map(popular.map(([index], place) => [items[index].key, place + 1]))
    for (const row of document.querySelectorAll('#column-popular .item')) markRow(row, before)
    // The marks of the other lists compare with another publication.
    for (const mark of document.querySelectorAll('.beyond .item > .rank + span')) showMark(mark, 0, undefined)
  } catch {
    // The marks of the server stay.
  }
}

function markRow(row: Element, before: Map<string, number>) {
  const rank = Number.parseInt(row.querySelector('.rank')?.textContent ?? '', 10)
  const mark = row.querySelector('.rank + span')
  if (mark) showMark(mark, rank, before.get(row.getAttribute('data-key') ?? '') ?? null)
}

/** Shows how a rank changed. @param before the earlier rank; null for a new item, undefined if unknown */
function showMark(mark: Element, rank: number, before: number | null | undefined) {
  const rose = typeof before === 'number' ? before - rank : 0
  const isNew = before === null
  const name = isNew ? 'rose new' : rose === 0 ? '' : `rose ${rose > 0 ? 'up' : 'down'}`
  const text = isNew ? 'NEW' : rose === 0 ? '' : `${rose > 0 ? '▲' : '▼'} ${Math.abs(rose)}`
  mark.className = name
  mark.textContent = text
}

/**
 * Keeps the newest version of something that this browser saw, and the one before.
 *
 * @param isLater whether the first version is later than the second; an older page than the last one changes nothing
 * @returns `before`: the version of the last visit, null for a first visit; `isNew`: false if the newest was seen already
 */
function lastSeen(
  key: string,
  newest: string,
  form: RegExp,
  isLater: (one: string, other: string) => boolean = () => true,
): { before: string | null; isNew: boolean } {
  const seen = Object(stored(key))
  const textOf = (value: unknown) => (typeof value === 'string' && form.test(value) ? value : null)
  const [last, earlier] = [textOf(seen.newest), textOf(seen.before)]
  if (last === null || last === newest) {
    const before = last === null ? null : earlier
    store(key, { newest, before })
    return { before, isNew: false }
  }
  if (!isLater(newest, last)) return { before: earlier, isNew: false }
  store(key, { newest, before: last })
  return { before: last, isNew: true }
}

/**
 * Marks the rows that entered a live list since the snapshot that this browser saw last, instead of since yesterday, and
 * counts those that the visitor has not hidden.
 */
export function setUpNews() {
  const line = document.querySelector('.news')
  const snapshot = line?.getAttribute('data-snapshot') ?? ''
  const yesterday = line?.getAttribute('data-since') ?? ''
  if (!line || !INSTANT.test(snapshot) || !INSTANT.test(yesterday)) return
  const { before } = lastSeen('dash-snapshot', snapshot, INSTANT, (one, other) => one > other)
  const since = before ?? yesterday
  const isNew = (mark: Element) => (mark.getAttribute('data-entered') ?? '') > since
  const shown = [...document.querySelectorAll('.item:not([hidden]) [data-entered]')]
  const entered = shown.filter(isNew)
  const [first] = entered
  const text = `${first ? entered.length : 'nothing'} new since ${minuteSeenFrom(Date.now(), Date.parse(since))}`
  for (const mark of document.querySelectorAll('[data-entered]'))
    showMark(mark, 0, isNew(mark) ? null : undefined)
  document.getElementById('new')?.removeAttribute('id')
  if (first) first.id = 'new'
  line.replaceChildren(first ? make('a', { href: '#new' }, text) : text)
}
