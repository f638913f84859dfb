/** @type {Promise<ReturnType<typeof import('./chat-panel.js').startChat>> | null} */
let panelPromise = null

/** Loads the panel when it is first opened: most visitors only read. */
function panel() {
  panelPromise ??= import('./chat-panel.js').then(({ startChat }) => startChat())
  return panelPromise
}

/** Opens the chat from its button, from links to its section, and from the "discuss" button of an item, with that item. */
export function setUpChat() {
  const sheet = document.getElementById('chat-sheet')
  if (!sheet) return
  document.documentElement.classList.toggle('item-chat', sheet.dataset['items'] !== undefined)
  document.addEventListener('click', (event) => {
    const target = event.target instanceof Element ? event.target : null
    const discuss = target?.closest('[data-discuss]')
    const opener = target?.closest('[data-chat="open"], nav a[href="#chat"]')
    if (!discuss && !opener) return
    event.preventDefault()
    void panel().then((chat) => {
      if (discuss instanceof HTMLElement) chat.discuss(itemOf(discuss))
      chat.open()
    })
  })
}

/** @param {HTMLElement} button */
function itemOf(button) {
  const key = button.dataset['discuss'] ?? ''
  const title = button.closest('[data-key]')?.querySelector('.title bdi')?.textContent ?? key
  return { key, title: title.trim() }
}
