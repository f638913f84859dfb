import { setUpCopyButtons } from './dom.ts'
import { setUpHidden } from './hidden.ts'
import { setUpKeys } from './keys.ts'
import { setUpNews, setUpSince } from './since.ts'
import { setUpTimeline } from './year.ts'
import type { startChat } from './chat/chat-panel.ts'

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

let panelPromise: Promise<ReturnType<typeof startChat>> | null = null

/** Loads the panel when it is first opened: most visitors only read. */
function panel() {
  panelPromise ??= import('./chat/chat-panel.ts').then((loaded) => loaded.startChat())
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
  const move = ({ target }: Event) => {
    const day = target instanceof SVGRectElement && target.classList.contains('day') ? target : null
    if (!day) return
    const { x, y, width, height } = day.getBBox()
    line.setAttribute('d', `M${x + width / 2} ${y}v${height}`)
    label.textContent = day.textContent
  }
  for (const type of ['pointermove', 'pointerdown']) chart.addEventListener(type, move)
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
