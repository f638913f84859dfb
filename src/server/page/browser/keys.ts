import { announce, make, onClick } from './dom.ts'
import { ROW, hidesRead, setHidesRead, showHiddenItems, toggleHidden } from './hidden.ts'

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
export function setUpKeys() {
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

function openHelp() {
  help ??= makeHelp()
  hideReadField(help).checked = hidesRead()
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
      <p><label><input type="checkbox" name="read" /> Hide stories that I opened</label></p>
      <p class="as-of">Kept in this browser only.</p>
      <p><button>Done</button> <button type="button" data-show>Show all hidden stories</button></p>
    </form>`
  const rows = Object.entries(KEYS).map(([key, { what }]) =>
    make('tr', {}, make('th', { scope: 'row' }, make('kbd', {}, key)), make('td', {}, what)),
  )
  dialog.querySelector('tbody')?.append(...rows)
  dialog.querySelector('[data-show]')?.addEventListener('click', showHiddenItems)
  const field = hideReadField(dialog)
  dialog.addEventListener('close', () => setHidesRead(field.checked))
  document.body.append(dialog)
  return dialog
}

function hideReadField(dialog: HTMLDialogElement) {
  const field = dialog.querySelector('input[name="read"]')
  if (!(field instanceof HTMLInputElement)) throw new Error('the help has no field read')
  return field
}
