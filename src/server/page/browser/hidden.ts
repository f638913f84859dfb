import { announce, make, store, stored } from './dom.ts'

/** What a visitor hides. It is stored in this browser only, and never sent. */
const KEY = 'dash-hidden'

/** Most remembered items; the oldest are forgotten. */
const ITEMS_MAX = 2_000

/** A story: a row of a list or of a comparison. */
export const ROW = '.item[data-key], .compared tr[data-key]'

export type Hidden = { hidden: string[]; read: string[]; hidesRead: boolean }

let state: Hidden = read()

/** Lists whose hidden rows are shown until the page is left. */
const opened = new WeakSet()

/** Hides the visitor's hidden rows, also in lists that are added later, and remembers the titles that are opened. */
export function setUpHidden() {
  applyAll()
  const main = document.getElementById('main')
  if (main) new MutationObserver(applyAll).observe(main, { childList: true, subtree: true })
  for (const type of ['click', 'auxclick'])
    document.addEventListener(type, ({ target }) => {
      const link = target instanceof Element ? target.closest('.title a') : null
      const key = link && keyOf(link.closest(ROW))
      if (key) save({ ...state, read: added(state.read, key) })
    })
  addEventListener('storage', ({ key }) => {
    if (key !== KEY) return
    state = read()
    applyAll()
  })
}

/** True if stories that were opened are hidden. */
export const hidesRead = () => state.hidesRead

export function setHidesRead(hides: boolean) {
  save({ ...state, hidesRead: hides })
  applyAll()
}

/** Shows every hidden story again. */
export function showHiddenItems() {
  save({ ...state, hidden: [], read: [] })
  applyAll()
  announce('Hidden items are shown again.')
}

/** Hides an item, and the same story on other sources; brings back one that is hidden. */
export function toggleHidden(item: Element) {
  const key = keyOf(item)
  if (key === null || !(item instanceof HTMLElement)) return
  const keys = [key, ...(item.dataset['others'] ?? '').split(' ').filter((other) => other !== '')]
  const isBack = matches(item)
  const without = (list: readonly string[]) => list.filter((each) => !keys.includes(each))
  if (isBack) save({ ...state, hidden: without(state.hidden), read: without(state.read) })
  else save({ ...state, hidden: keys.reduce(added, state.hidden) })
  applyAll()
  announce(isBack ? 'Shown again.' : 'Hidden. "Show" below the list shows it again.')
}

function keyOf(item: Element | null) {
  return item instanceof HTMLElement ? (item.dataset['key'] ?? null) : null
}

function added(keys: readonly string[], key: string) {
  return [...keys.filter((each) => each !== key), key].slice(-ITEMS_MAX)
}

function applyAll() {
  for (const list of document.querySelectorAll('.items, .compared tbody')) hideRows(list)
}

/** Hides the visitor's hidden rows of a list. */
function hideRows(list: Element) {
  const isOpened = opened.has(list)
  let count = 0
  for (const item of list.querySelectorAll(ROW)) {
    if (!(item instanceof HTMLElement)) continue
    const isHidden = matches(item)
    const key = keyOf(item) ?? ''
    item.classList.toggle('read', state.read.includes(key))
    const button = item.querySelector('[data-hide]')
    const action = isHidden ? 'Show again' : 'Hide'
    if (button && button.textContent !== action) button.textContent = action
    if (item.hidden !== (isHidden && !isOpened)) item.hidden = isHidden && !isOpened
    if (isHidden) count += 1
  }
  showCount(list, isOpened ? 0 : count)
}

function matches(item: HTMLElement) {
  const key = keyOf(item) ?? ''
  return state.hidden.includes(key) || (state.hidesRead && state.read.includes(key))
}

/** Shows below a list how many of its rows are hidden, with a button that shows them. */
function showCount(list: Element, count: number) {
  const whole = list.closest('table') ?? list
  const next = whole.nextElementSibling
  const line = next?.classList.contains('hidden-count') ? next : null
  if (line?.getAttribute('data-count') === String(count)) return
  line?.remove()
  if (count === 0) return
  const button = make('button', { type: 'button' }, 'Show')
  button.addEventListener('click', () => {
    opened.add(list)
    hideRows(list)
    const first = list.querySelector('.title a')
    if (first instanceof HTMLElement) first.focus()
  })
  const created = make('p', { className: 'hidden-count' }, `${count} hidden `, button)
  created.dataset['count'] = String(count)
  whole.after(created)
}

function read(): Hidden {
  const { hidden, read: opens, hidesRead: hides } = Object(stored(KEY))
  const texts = (value: unknown) =>
    Array.isArray(value) ? value.filter((each) => typeof each === 'string' && each.trim() !== '') : []
  return { hidden: texts(hidden), read: texts(opens), hidesRead: hides === true }
}

function save(next: Hidden) {
  state = next
  store(KEY, next)
}
