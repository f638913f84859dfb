import { make } from './dom.ts'
import { lastSeen } from './last-seen.ts'

const DAY_MS = 86_400_000

/**
 * Marks the rows that entered a live list since the snapshot that this browser saw last, instead of since yesterday, and
 * counts those that the visitor has not hidden.
 */
export function setUpNews() {
  const line = document.querySelector('.news')
  const snapshot = line?.getAttribute('data-snapshot') ?? ''
  if (!line || !isInstant(snapshot)) return
  const since = lastSeen('dash-snapshot', snapshot, isInstant, (one, other) => one > other).before
  if (since !== null) for (const mark of document.querySelectorAll('[data-entered]')) markSince(mark, since)
  const shown = [...document.querySelectorAll('.item:not([hidden]) .new[data-entered]')]
  const [first] = shown
  document.getElementById('new')?.removeAttribute('id')
  if (first) first.id = 'new'
  const of =
    since === null ? (line.textContent?.trim().replace(/^\S+ /, '') ?? '') : `new since ${timeText(since)}`
  const text = `${first ? shown.length : 'nothing'} ${of}`
  line.replaceChildren(first ? make('a', { href: '#new' }, text) : text)
}

function markSince(mark: Element, since: string) {
  const isNew = (mark.getAttribute('data-entered') ?? '') > since
  mark.className = isNew ? 'rose new' : ''
  mark.textContent = isNew ? 'NEW' : ''
}

function isInstant(text: unknown) {
  return typeof text === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(text)
}

/** Formats an instant, `yesterday 18:00 UTC`. */
function timeText(at: string) {
  const dayOf = (time: number) => new Date(time).toISOString().slice(0, 10)
  const [day, now] = [at.slice(0, 10), Date.now()]
  const name = day === dayOf(now) ? 'today' : day === dayOf(now - DAY_MS) ? 'yesterday' : day
  return `${name} ${at.slice(11, 16)} UTC`
}
