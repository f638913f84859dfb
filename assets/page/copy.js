import { announce } from './announce.js'

/** Buttons with `data-copy` copy the text of the element with that id. */
export function offerCopies() {
  document.addEventListener('click', (event) => {
    const button = event.target instanceof Element ? event.target.closest('button[data-copy]') : null
    if (!(button instanceof HTMLButtonElement)) return
    const text = document.getElementById(button.dataset['copy'] ?? '')?.textContent ?? ''
    void copy(text.trim())
  })
}

/** @param {string} text */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text)
    announce('Copied.')
  } catch {
    announce('The browser does not let this page copy; select the text instead.')
  }
}
