import { announce, make, onClick, setUpCopyButtons } from './dom.ts'
import { ROW, hidesRead, setHidesRead, setUpHidden, showHiddenItems, toggleHidden } from './hidden.ts'
import { setUpNews, setUpSince } from './since.ts'
import { setUpTimeline } from './year.ts'
import type { ChatPanel } from './chat/chat-panel.ts'

/** Closes an open menu by a click elsewhere or on one of the actions of a row, and by Escape. */
function setUpMenus() {
  document.addEventListener('click', ({ target }) => {
    const menu = openMenu()
    const isInside = target instanceof Element && menu?.contains(target) && !target.closest('.row-menu > div')
    if (menu && !isInside) menu.open = false
  })
  document.addEventListener('keydown', ({ key }) => {
    const menu = openMenu()
    if (key !== 'Escape' || !menu) return
    menu.open = false
    menu.querySelector('summary')?.focus()
  })
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
    if (!used || isTyping || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return
    event.preventDefault()
    used.act()
  })
  onClick('[data-help]', openHelp)
  onClick('[data-hide]', (button) => hideRow(button.closest(ROW)))
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

function openHelp() {
  help ??= makeHelp()
  hideRead.checked = hidesRead()
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
      <p><label> Hide stories that I opened</label></p>
      <p class="as-of">Kept in this browser only.</p>
      <p><button>Done</button> <button type="button" data-show>Show all hidden stories</button></p>
    </form>`
  const rows = Object.entries(KEYS).map(([key, { what }]) =>
    make('tr', {}, make('th', { scope: 'row' }, make('kbd', {}, key)), make('td', {}, what)),
  )
  dialog.querySelector('tbody')?.append(...rows)
  dialog.querySelector('[data-show]')?.addEventListener('click', showHiddenItems)
  dialog.querySelector('label')?.prepend(hideRead)
  dialog.addEventListener('close', () => setHidesRead(hideRead.checked))
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
    if (!sheet || (!discuss && !opener)) return
    event.preventDefault()
    void panel().then((chat) => {
      if (discuss instanceof HTMLElement) chat.discuss(itemOf(discuss))
      chat.open()
    })
  })
  if (!sheet?.classList.contains('inside')) return
  void panel().then((chat) => {
    const { key, title = '' } = sheet.dataset
    if (key !== undefined) chat.discuss({ key, title })
    chat.open()
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
