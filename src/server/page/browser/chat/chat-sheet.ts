import type { ChatSettings } from '../../../../domain/agent/chat-request.ts'
import { INTERESTS_MAX, INTEREST_MAX_LENGTH } from '../../../../domain/agent/bounds.ts'
import { firstCodePoints } from '../../../../domain/text.ts'
import { store, stored } from '../dom.ts'

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
    button: (name: string) => {
      const element = sheet.querySelector(`button[data-chat="${name}"]`)
      if (!(element instanceof HTMLButtonElement)) throw new Error(`the page has no button ${name}`)
      return element
    },
  }
}

function partById<Kind extends HTMLElement>(id: string, kind: new () => Kind): Kind {
  const element = document.getElementById(id)
  if (!(element instanceof kind)) throw new Error(`the page has no ${id}`)
  return element
}

/**
 * Opens and closes the sheet: beside the page on a wide screen, as a modal dialog on a narrow one. On the page of the chat
 * it is a part of the page.
 *
 * @param text gets the focus when the sheet opens
 */
export function sheetControls(sheet: HTMLDialogElement, text: HTMLTextAreaElement) {
  const wideScreen = matchMedia('(min-width: 60rem)')
  let opener: Element | null = null
  const isInside = sheet.classList.contains('inside')
  const show = () => {
    if (wideScreen.matches || isInside) sheet.show()
    else sheet.showModal()
  }
  wideScreen.addEventListener('change', () => {
    if (!sheet.open) return
    sheet.close()
    show()
  })
  return {
    /** True on the page of the chat, which has nothing else to show. */
    isInside,
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

/** Connects the sheet's keys and buttons to actions: Enter sends, Shift+Enter breaks the line, Escape stops or closes. */
export function bindControls(
  parts: ReturnType<typeof chatParts>,
  actions: Record<'send' | 'stop' | 'escape' | 'site' | 'startOver' | 'close', () => void>,
) {
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

/** Where the settings are stored. */
const KEY = 'dash-chat-settings'

/**
 * Settings of the chat, stored in this browser only. If storage is forbidden, they last as long as the page.
 *
 * @returns returns the settings for a request
 */
export function chatSettings(form: HTMLFormElement): () => Partial<ChatSettings> {
  fill(form, Object(stored(KEY)))
  form.addEventListener('change', () => store(KEY, textsOf(form)))
  form.addEventListener('reset', () => store(KEY, null))
  form.addEventListener('submit', (event) => event.preventDefault())
  return () => {
    const { interests = '', ...values } = textsOf(form)
    const interestList = interests.split(',').map((word) => firstCodePoints(word.trim(), INTEREST_MAX_LENGTH))
    return { ...values, interests: interestList.filter((word) => word !== '').slice(0, INTERESTS_MAX) }
  }
}

function textsOf(form: HTMLFormElement): Record<string, string> {
  const fields = [...new FormData(form)]
  return Object.fromEntries(
    fields.flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
  )
}

function fill(form: HTMLFormElement, values: Record<string, unknown>) {
  for (const field of form.elements) {
    const isField =
      field instanceof HTMLInputElement ||
      field instanceof HTMLTextAreaElement ||
      field instanceof HTMLSelectElement
    const value = isField ? values[field.name] : undefined
    if (!isField || typeof value !== 'string') continue
    const isChoice = field instanceof HTMLSelectElement
    if (!isChoice || [...field.options].some((option) => option.value === value)) field.value = value
  }
}
