/** The chat inside a frame of another page: it tells that page when it is closed, and opens again when it is told. */

const sheet = document.getElementById('chat-sheet')

sheet?.addEventListener('close', () => parent.postMessage('dash:close', '*'))

addEventListener('message', ({ source, data }) => {
  if (source !== parent || data !== 'dash:open') return
  const opener = document.querySelector('button[data-chat="open"]')
  if (opener instanceof HTMLButtonElement) opener.click()
})
