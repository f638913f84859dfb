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

/** Closes an open menu of the header by a click elsewhere and by Escape. */
function setUpMenus() {
  document.addEventListener('click', ({ target }) => {
    const menu = openMenu()
    if (menu && target instanceof Node && !menu.contains(target)) menu.open = false
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
