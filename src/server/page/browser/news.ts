import { lastSeen } from './last-seen.ts'

const DAY_MS = 86_400_000

/** Marks the rows that entered a live list since the snapshot that this browser saw last, instead of since yesterday. */
export function setUpNews() {
  const line = document.querySelector('.news')
  const snapshot = line?.getAttribute('data-snapshot') ?? ''
  if (!line || !isInstant(snapshot)) return
  const since = lastSeen('dash-snapshot', snapshot, isInstant).before
  if (since === null) return
  document.getElementById('new')?.removeAttribute('id')
  let count = 0
  for (const mark of document.querySelectorAll('[data-entered]')) {
    const isNew = (mark.getAttribute('data-entered') ?? '') > since
    mark.className = isNew ? 'rose new' : ''
    mark.textContent = isNew ? 'NEW' : ''
    if (!isNew) continue
    if (count === 0) mark.id = 'new'
    count += 1
  }
  const text = `${count === 0 ? 'nothing' : count} new since ${timeText(since)}`
  const link = document.createElement('a')
  link.href = '#new'
  link.textContent = text
  line.replaceChildren(count === 0 ? text : link)
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
