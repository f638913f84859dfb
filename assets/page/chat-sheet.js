/** The parts of the chat's sheet, as the server renders them. */
export function chatParts() {
  const sheet = of('chat-sheet', HTMLDialogElement)
  return {
    sheet,
    log: of('chat-log', HTMLElement),
    scope: of('chat-scope', HTMLElement),
    human: of('chat-human', HTMLElement),
    status: of('chat-status', HTMLElement),
    note: of('chat-note', HTMLElement),
    quota: of('chat-quota', HTMLElement),
    form: of('chat-form', HTMLFormElement),
    text: of('chat-text', HTMLTextAreaElement),
    settings: of('chat-settings', HTMLFormElement),
    /** @param {string} name */
    button: (name) => {
      const found = sheet.querySelector(`button[data-chat="${name}"]`)
      if (!(found instanceof HTMLButtonElement)) throw new Error(`the page has no button ${name}`)
      return found
    },
  }
}

/**
 * @template {HTMLElement} Kind
 * @param {string} id
 * @param {new () => Kind} kind
 * @returns {Kind}
 */
function of(id, kind) {
  const found = document.getElementById(id)
  if (!(found instanceof kind)) throw new Error(`the page has no ${id}`)
  return found
}

/**
 * Opens and closes the sheet: beside the page where there is room, over it where there is none.
 *
 * @param {HTMLDialogElement} sheet
 * @param {HTMLTextAreaElement} text has the focus once it is open
 */
export function openable(sheet, text) {
  const beside = matchMedia('(min-width: 60rem)')
  /** @type {Element | null} */
  let opener = null
  const show = () => {
    if (beside.matches) sheet.show()
    else sheet.showModal()
  }
  beside.addEventListener('change', () => {
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
 * Lets the sheet's keys and buttons act: Enter sends, Shift+Enter breaks the line, Escape leaves.
 *
 * @param {ReturnType<typeof chatParts>} parts
 * @param {Record<'send' | 'stop' | 'leave' | 'site' | 'begin' | 'close', () => void>} acts
 */
export function whenUsed(parts, acts) {
  parts.form.addEventListener('submit', (event) => {
    event.preventDefault()
    acts.send()
  })
  parts.text.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
    event.preventDefault()
    acts.send()
  })
  parts.sheet.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || event.isComposing) return
    event.preventDefault()
    acts.leave()
  })
  parts.button('stop').addEventListener('click', acts.stop)
  parts.button('site').addEventListener('click', acts.site)
  parts.button('new').addEventListener('click', acts.begin)
  parts.button('close').addEventListener('click', acts.close)
}
