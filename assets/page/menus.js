/** Closes an open menu of the header by a click elsewhere and by Escape. */
export function setUpMenus() {
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
