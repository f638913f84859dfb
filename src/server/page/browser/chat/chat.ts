import type { startChat } from './chat-panel.ts'

let panelPromise: Promise<ReturnType<typeof startChat>> | null = null

/** Loads the panel when it is first opened: most visitors only read. */
function panel() {
  panelPromise ??= import('./chat-panel.ts').then((loaded) => loaded.startChat())
  return panelPromise
}

/**
 * Opens the chat from its buttons, from the header, and from the "Ask" link of an item, with that item. On its own page
 * the chat is open from the start. On pages without the chat the links lead to its page.
 */
export function setUpChat() {
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
