/** The chat in a frame of another page: closing it sends that page a message, and a message from that page opens it. */

const sheet = document.getElementById('chat-sheet')

sheet?.addEventListener('close', () => parent.postMessage('dash:close', '*'))

addEventListener('message', ({ source, data }) => {
  if (source !== parent || data !== 'dash:open') return
  const opener = document.querySelector('button[data-chat="open"]')
  if (opener instanceof HTMLButtonElement) opener.click()
})
