import { announce, isComposing, make, onClick, onReturn, setUpCopyButtons, store, stored } from './dom.ts'
import { setUpNews, setUpSince, setUpTimeline } from './year.ts'
import type { ChatPanel } from './chat/chat-panel.ts'

/** What a visitor hides, and whether the keys are off. It is stored in this browser only, and never sent. */
const KEY = 'dash-hidden'

/** Most remembered items; the oldest are forgotten. */
const ITEMS_MAX = 2_000

/** A story: a row of a list or of a comparison. */
const ROW = '.item[data-key], .compared tr[data-key]'

type Hidden = { hidden: string[]; read: string[]; hidesRead: boolean; withoutKeys: boolean }

let state: Hidden = read()

/** The secondary button of a pointer, which opens a menu instead of the link. */
const OPENS_MENU = 2

/** Lists whose hidden rows are shown until the page is left. */
const opened = new WeakSet()

/** Hides the visitor's hidden rows, also in lists that are added later, and remembers the titles that are opened. */
function setUpHidden() {
  applyAll()
  const main = document.getElementById('main')
  if (main) new MutationObserver(applyAll).observe(main, { childList: true, subtree: true })
  for (const type of ['click', 'auxclick'] as const)
    document.addEventListener(type, ({ target, button }) => {
      const link = target instanceof Element ? target.closest('.title a') : null
      const key = link && keyOf(link.closest(ROW))
      if (key && button !== OPENS_MENU) save({ read: added(state.read, key) })
    })
  const readAgain = () => {
    state = read()
    applyAll()
  }
  addEventListener('storage', ({ key }) => {
    if (key === KEY) readAgain()
  })
  onReturn(() => {
    if (stored(KEY) !== null) readAgain()
  })
}

/** Hides an item, and the same story on other sources; brings back one that is hidden. */
function toggleHidden(item: Element) {
  const key = keyOf(item)
  if (key === null || !(item instanceof HTMLElement)) return
  const keys = [key, ...(item.dataset['others'] ?? '').split(' ').filter((other) => other !== '')]
  const isBack = matches(item)
  const without = (list: readonly string[]) => list.filter((each) => !keys.includes(each))
  if (isBack) save({ hidden: without(state.hidden), read: without(state.read) })
  else save({ hidden: keys.reduce(added, state.hidden) })
  applyAll()
  announce(isBack ? 'Shown again.' : 'Hidden. "Show" below the list shows it again.')
}

function keyOf(item: Element | null) {
  return item instanceof HTMLElement ? (item.dataset['key'] ?? null) : null
}

function added(keys: readonly string[], key: string) {
  return [...keys.filter((each) => each !== key), key].slice(-ITEMS_MAX)
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
  const { hidden, read: opens, hidesRead: hides, withoutKeys } = Object(stored(KEY))
  const texts = (value: unknown) =>
    Array.isArray(value) ? value.filter((each) => typeof each === 'string' && each.trim() !== '') : []
  return {
    hidden: texts(hidden),
    read: texts(opens),
    hidesRead: hides === true,
    withoutKeys: withoutKeys === true,
  }
}

function save(change: Partial<Hidden>) {
  state = { ...state, ...change }
  store(KEY, state)
}

function applyAll() {
  for (const list of document.querySelectorAll('.items, .compared tbody')) hideRows(list)
}

/** Closes an open menu by a click elsewhere or on one of the actions of a row, and by Escape. */
function setUpMenus() {
  document.addEventListener('click', ({ target }) => {
    const menu = openMenu()
    const isInside = target instanceof Element && menu?.contains(target) && !target.closest('.row-menu > div')
    if (menu && !isInside) closeMenu(menu)
  })
  document.addEventListener('keydown', (event) => {
    const menu = openMenu()
    if (event.key !== 'Escape' || !menu) return
    event.preventDefault()
    closeMenu(menu)
  })
}

/** Closes a menu. The focus does not stay on what is no longer shown. */
function closeMenu(menu: HTMLDetailsElement) {
  const hadFocus = menu.contains(document.activeElement)
  menu.open = false
  if (hadFocus) menu.querySelector('summary')?.focus()
}

function openMenu() {
  const menu = document.querySelector('details.menu[open]')
  return menu instanceof HTMLDetailsElement ? menu : null
}

/** Keys of the page; the dialog lists them. */
const KEYS: Readonly<Record<string, { what: string; act: () => void }>> = {
  j: { what: 'next story', act: () => move(1) },
  k: { what: 'previous story', act: () => move(-1) },
  o: { what: 'open the story', act: () => follow('.title a') },
  c: { what: 'open its discussion', act: () => follow('a.comments') },
  x: { what: 'hide it', act: () => hideRow(current()) },
  '[': { what: 'earlier publication, or previous period', act: () => step(-1) },
  ']': { what: 'later publication, or next period', act: () => step(1) },
  '/': { what: 'search', act: () => document.getElementById('q')?.focus() },
  '?': { what: 'this help', act: () => openHelp() },
}

/** Handles the keys outside of fields, the buttons that hide a row, and the one that opens the help. */
function setUpKeys() {
  document.addEventListener('keydown', (event) => {
    const { key, target } = event
    const isTyping =
      target instanceof Element &&
      target.closest('input:not([type="range"]), textarea, select, [contenteditable], dialog')
    if (key === 'Escape' && target instanceof HTMLElement && target.matches('#q')) target.blur()
    const used = KEYS[key]
    if (!used || isTyping || state.withoutKeys || isCommand(event) || isComposing(event)) return
    event.preventDefault()
    used.act()
  })
  onClick('[data-help]', openHelp)
  onClick('[data-hide]', (button) => hideRow(button.closest(ROW)))
}

/** True for a key with a modifier of commands. Many keyboards have brackets on AltGr or Option, which are no commands. */
function isCommand(event: KeyboardEvent) {
  const { key, ctrlKey, metaKey, altKey } = event
  const isTyped = '[]'.includes(key) && (event.getModifierState('AltGraph') || !ctrlKey)
  return metaKey || ((ctrlKey || altKey) && !isTyped)
}

function items() {
  return [...document.querySelectorAll(ROW)].filter((item) => item.checkVisibility())
}

function current() {
  return document.activeElement?.closest(ROW) ?? null
}

function move(by: 1 | -1) {
  const shown = items()
  const at = shown.findIndex((item) => item === current())
  focusItem(at === -1 ? shown[0] : shown[at + by])
}

function focusItem(item: Element | undefined) {
  const link = item?.querySelector('.title a') ?? item?.querySelector('a.rank')
  if (!(link instanceof HTMLElement)) return
  link.focus({ preventScroll: true })
  item?.scrollIntoView({ block: 'nearest' })
}

function follow(selector: string) {
  const link = current()?.querySelector(selector)
  if (link instanceof HTMLElement) link.click()
  else announce(current() ? 'This row has no such link.' : 'No story is chosen; press j.')
}

function hideRow(item: Element | null) {
  if (!item) return announce('No story is chosen; press j.')
  const shown = items()
  const at = shown.indexOf(item)
  toggleHidden(item)
  focusItem(item.checkVisibility() ? item : (shown[at + 1] ?? shown[at - 1]))
}

/** Follows the link to the neighbour in time, else to the period beside the present one. */
function step(by: 1 | -1) {
  const near = document.querySelector(`a[rel~="${by < 0 ? 'prev' : 'next'}"]`)
  const tabs = [...document.querySelectorAll('.tabs a')]
  const at = tabs.findIndex((tab) => tab.hasAttribute('aria-current'))
  const link = near ?? (at === -1 ? null : tabs[at + by])
  if (link instanceof HTMLElement) link.click()
}

let help: HTMLDialogElement | null = null
const hideRead = make('input', { type: 'checkbox', name: 'read' })
/** Single keys get in the way of speech input. */
const useKeys = make('input', { type: 'checkbox', name: 'keys' })

function openHelp() {
  help ??= makeHelp()
  hideRead.checked = state.hidesRead
  useKeys.checked = !state.withoutKeys
  if (!help.open) help.showModal()
}

function makeHelp() {
  const dialog = make('dialog', { className: 'help' })
  dialog.setAttribute('aria-labelledby', 'help-title')
  // Constant markup: nothing of the visitor or of a source is in it.
  dialog.innerHTML = `
    <h2 id="help-title">Keys and hidden stories</h2>
    <table><tbody></tbody></table>
    <form method="dialog">
      <p class="as-of">Kept in this browser only.</p>
      <p><button>Done</button> <button type="button" data-show>Show all hidden stories</button></p>
    </form>`
  const rows = Object.entries(KEYS).map(([key, { what }]) =>
    make('tr', {}, make('th', { scope: 'row' }, make('kbd', {}, key)), make('td', {}, what)),
  )
  dialog.querySelector('tbody')?.append(...rows)
  dialog.querySelector('[data-show]')?.addEventListener('click', () => {
    save({ hidden: [], read: [] })
    // Behind an open dialog nothing is seen or announced.
    dialog.close()
    announce('Hidden stories are shown again.')
  })
  dialog
    .querySelector('form')
    ?.prepend(
      make('p', {}, make('label', {}, useKeys, ' Use these keys')),
      make('p', {}, make('label', {}, hideRead, ' Hide stories that I opened')),
    )
  dialog.addEventListener('close', () => {
    save({ hidesRead: hideRead.checked, withoutKeys: !useKeys.checked })
    applyAll()
  })
  document.body.append(dialog)
  return dialog
}

let panelPromise: Promise<ChatPanel> | null = null

/** Loads the panel when it is first opened: most visitors only read. */
function panel() {
  panelPromise ??= import('./chat/chat-panel.ts').then((loaded) => new loaded.ChatPanel())
  return panelPromise
}

/**
 * Opens the chat from its buttons, from the header, and from the "Ask" link of an item, with that item. On its own page
 * the chat is open from the start. On pages without the chat the links lead to its page.
 */
function setUpChat() {
  const sheet = document.getElementById('chat-sheet')
  document.addEventListener('click', (event) => {
    const target = event.target instanceof Element ? event.target : null
    const discuss = target?.closest('[data-discuss]')
    const opener = target?.closest('[data-chat="open"]')
    const opensTab = event.ctrlKey || event.metaKey || event.shiftKey
    if (!sheet || (!discuss && !opener) || opensTab) return
    event.preventDefault()
    const link = target?.closest('a')
    const open = (chat: ChatPanel) => {
      if (discuss instanceof HTMLElement) chat.discuss(itemOf(discuss))
      chat.open()
    }
    // A script that failed to load is not loaded again on this page.
    panel().then(open, () => (link ? location.assign(link.href) : location.reload()))
  })
  if ('themeFixed' in document.documentElement.dataset) followFrame(sheet)
  if (!sheet?.classList.contains('inside')) return
  void panel().then((chat) => {
    const { key, title = '' } = sheet.dataset
    if (key !== undefined) chat.discuss({ key, title })
    chat.open()
  })
}

/** The chat in a frame of another page: closing it sends that page a message, and a message from that page opens it. */
function followFrame(sheet: HTMLElement | null) {
  sheet?.addEventListener('close', () => parent.postMessage('dash:close', '*'))
  addEventListener('message', ({ source, data }) => {
    if (source !== parent || data !== 'dash:open') return
    const opener = document.querySelector('button[data-chat="open"]')
    if (opener instanceof HTMLButtonElement) opener.click()
  })
}

function itemOf(link: HTMLElement) {
  const key = link.dataset['discuss'] ?? ''
  const title = link.closest('[data-key]')?.querySelector('.title bdi')?.textContent ?? key
  return { key, title: title.trim() }
}

const SVG = 'http://www.w3.org/2000/svg'

/** Adds a cursor to the chart of an item: a line at the day under the pointer, and the numbers of that day. */
function setUpItemChart() {
  const chart = document.querySelector('.over-time svg')
  if (!(chart instanceof SVGSVGElement)) return
  const line = chart.appendChild(document.createElementNS(SVG, 'path'))
  const label = chart.appendChild(document.createElementNS(SVG, 'text'))
  line.setAttribute('class', 'cursor')
  label.setAttribute('class', 'cursor')
  // Between the ranks and the points.
  label.setAttribute('x', '72')
  label.setAttribute('y', '240')
  const showDay = ({ target }: Event) => {
    const day = target instanceof SVGRectElement && target.classList.contains('day') ? target : null
    if (!day) return
    const { x, y, width, height } = day.getBBox()
    line.setAttribute('d', `M${x + width / 2} ${y}v${height}`)
    label.textContent = day.textContent
  }
  for (const type of ['pointermove', 'pointerdown']) chart.addEventListener(type, showDay)
  chart.addEventListener('pointerleave', () => {
    line.removeAttribute('d')
    label.textContent = ''
  })
}

// At the end: what they use stands above.
setUpMenus()
setUpHidden()
setUpKeys()
setUpCopyButtons()
setUpChat()
setUpNews()
setUpSince()
setUpTimeline()
setUpItemChart()
