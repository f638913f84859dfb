import { announce, make, onClick } from './dom.js'

/** Makes the buttons of the Proof sections check the publication in this browser. */
export function setUpProofChecks() {
  onClick('button[data-proof]', (button) => {
    if (button.getAttribute('aria-disabled') !== 'true') void checkAndShow(button)
  })
}

/** @param {HTMLElement} button */
async function checkAndShow(button) {
  // A disabled button would lose the focus.
  button.setAttribute('aria-disabled', 'true')
  const { shown, summary } = await checkFiles(button.dataset)
  button.removeAttribute('aria-disabled')
  const list = document.getElementById(button.dataset['results'] ?? '')
  list?.replaceChildren(...shown.map(itemOf))
  announce(summary)
}

/**
 * @typedef {import('./check-proof.js').Check} Check
 * @param {DOMStringMap} files URLs of the publication, its proof and the policy
 * @returns {Promise<{ shown: Check[], summary: string }>}
 */
async function checkFiles(files) {
  if (!globalThis.crypto?.subtle)
    return problem('Browsers offer the needed cryptography only to pages over HTTPS.')
  try {
    const [body, proof, policy] = await Promise.all(
      [files['object'], files['proof'], files['policy']].map(fetchBytes),
    )
    const { checkPublication } = await import('./check-proof.js')
    const text = (bytes = new Uint8Array()) => new TextDecoder().decode(bytes)
    const checks = await checkPublication(body ?? new Uint8Array(), text(proof), text(policy))
    const wrong = checks.filter(({ ok }) => ok === false)
    const verdict =
      wrong.length === 0
        ? 'This publication is in the log.'
        : `This publication is NOT proved: ${wrong.length} of ${checks.length} checks failed.`
    return { shown: [{ what: verdict, ok: wrong.length === 0 }, ...checks], summary: verdict }
  } catch (error) {
    return problem(`The check could not run: ${error instanceof Error ? error.message : String(error)}.`)
  }
}

/** @param {string} what */
function problem(what) {
  return { shown: [{ what, ok: false }], summary: what }
}

/**
 * @param {string | undefined} href
 * @returns {Promise<Uint8Array<ArrayBuffer>>}
 */
async function fetchBytes(href = '') {
  const response = await fetch(href, { cache: 'no-store' })
  if (!response.ok) throw new Error(`${href} has status ${response.status}`)
  return new Uint8Array(await response.arrayBuffer())
}

/** @param {Check} check */
function itemOf({ what, ok }) {
  const className = ok === null ? 'unchecked' : ok ? 'passed' : 'failed'
  return make('li', { className }, `${ok === null ? '' : ok ? '✓ ' : '✗ Failed: '}${what}`)
}
