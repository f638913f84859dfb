import { announce, onClick } from './dom.js'

/** Makes buttons with `data-copy` copy the text of the element with that id. */
export function setUpCopyButtons() {
  onClick('button[data-copy]', (button) => {
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
