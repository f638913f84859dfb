import { store, stored } from './dom.js'

const KEY = 'dash-chat-settings'
const INTERESTS_MAX = 10
const INTEREST_MAX_LENGTH = 40

/**
 * Settings of the chat, stored in this browser only. If storage is forbidden, they last as long as the page.
 *
 * @param {HTMLFormElement} form
 * @returns {() => object} returns the settings for a request
 */
export function chatSettings(form) {
  fill(form, Object(stored(KEY)))
  form.addEventListener('change', () => store(KEY, textsOf(form)))
  form.addEventListener('reset', () => store(KEY, null))
  form.addEventListener('submit', (event) => event.preventDefault())
  return () => {
    const { interests = '', ...values } = textsOf(form)
    const interestList = interests
      .split(',')
      .map((word) => Array.from(word.trim()).slice(0, INTEREST_MAX_LENGTH).join(''))
    return { ...values, interests: interestList.filter((word) => word !== '').slice(0, INTERESTS_MAX) }
  }
}

/**
 * @param {HTMLFormElement} form
 * @returns {Record<string, string>}
 */
function textsOf(form) {
  const fields = [...new FormData(form)]
  return Object.fromEntries(
    fields.flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
  )
}

/**
 * @param {HTMLFormElement} form
 * @param {Record<string, unknown>} values
 */
function fill(form, values) {
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
