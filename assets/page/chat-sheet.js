/** The elements of the chat's sheet, as the server renders them. */
export function chatParts() {
  const sheet = partById('chat-sheet', HTMLDialogElement)
  return {
    sheet,
    log: partById('chat-log', HTMLElement),
    scope: partById('chat-scope', HTMLElement),
    suggestions: partById('chat-suggestions', HTMLElement),
    human: partById('chat-human', HTMLElement),
    status: partById('chat-status', HTMLElement),
    note: partById('chat-note', HTMLElement),
    quota: partById('chat-quota', HTMLElement),
    form: partById('chat-form', HTMLFormElement),
    text: partById('chat-text', HTMLTextAreaElement),
    settings: partById('chat-settings', HTMLFormElement),
    /** @param {string} name */
    button: (name) => {
      const element = sheet.querySelector(`button[data-chat="${name}"]`)
      if (!(element instanceof HTMLButtonElement)) throw new Error(`the page has no button ${name}`)
      return element
    },
  }
}

/**
 * @template {HTMLElement} Kind
 * @param {string} id
 * @param {new () => Kind} kind
 * @returns {Kind}
 */
function partById(id, kind) {
  const element = document.getElementById(id)
  if (!(element instanceof kind)) throw new Error(`the page has no ${id}`)
  return element
}

/**
 * Opens and closes the sheet: beside the page on a wide screen, as a modal dialog on a narrow one. On the page of the chat
 * it is a part of the page.
 *
 * @param {HTMLDialogElement} sheet
 * @param {HTMLTextAreaElement} text gets the focus when the sheet opens
 */
export function sheetControls(sheet, text) {
  const wideScreen = matchMedia('(min-width: 60rem)')
  /** @type {Element | null} */
  let opener = null
  const show = () => {
    if (wideScreen.matches || sheet.classList.contains('inside')) sheet.show()
    else sheet.showModal()
  }
  wideScreen.addEventListener('change', () => {
    if (!sheet.open) return
    sheet.close()
    show()
  })
  return {
    open() {
      if (!sheet.open) {
        opener = document.activeElement
        show()
      }
      text.focus()
    },
    close() {
      sheet.close()
      if (opener instanceof HTMLElement) opener.focus()
    },
  }
}

/**
 * Connects the sheet's keys and buttons to actions: Enter sends, Shift+Enter breaks the line, Escape stops or closes.
 *
 * @param {ReturnType<typeof chatParts>} parts
 * @param {Record<'send' | 'stop' | 'escape' | 'site' | 'startOver' | 'close', () => void>} actions
 */
export function bindControls(parts, actions) {
  parts.form.addEventListener('submit', (event) => {
    event.preventDefault()
    actions.send()
  })
  parts.text.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
    event.preventDefault()
    actions.send()
  })
  parts.sheet.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || event.isComposing) return
    event.preventDefault()
    actions.escape()
  })
  parts.button('stop').addEventListener('click', actions.stop)
  parts.button('site').addEventListener('click', actions.site)
  parts.button('new').addEventListener('click', actions.startOver)
  parts.button('close').addEventListener('click', actions.close)
}
