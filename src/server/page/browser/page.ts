import { setUpChat } from './chat/chat.ts'
import { setUpCopyButtons } from './dom.ts'
import { setUpHidden } from './hidden.ts'
import { setUpItemChart } from './item-chart.ts'
import { setUpKeys } from './keys.ts'
import { setUpNews } from './news.ts'
import { setUpSince } from './since.ts'
import { setUpTimeline } from './year.ts'

setUpMenus()
setUpHidden()
setUpKeys()
setUpCopyButtons()
setUpChat()
setUpNews()
setUpSince()
setUpTimeline()
setUpItemChart()

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
