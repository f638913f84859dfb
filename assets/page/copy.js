import { announce } from './announce.js'

/** Makes buttons with `data-copy` copy the text of the element with that id. */
export function setUpCopyButtons() {
  document.addEventListener('click', (event) => {
    const button = event.target instanceof Element ? event.target.closest('button[data-copy]') : null
    if (!(button instanceof HTMLButtonElement)) return
    const text = document.getElementById(button.dataset['copy'] ?? '')?.textContent ?? ''
    void copy(text.trim()).then(announce)
  })
}

/**
 * Copies a text.
 *
 * @param {string} text
 * @returns {Promise<string>} the result as a message
 */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text)
    return 'Copied.'
  } catch {
    return 'The browser blocked copying; select the text instead.'
  }
}
