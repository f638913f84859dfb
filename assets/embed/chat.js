// Puts a button on the page of another site, which opens the chat of this server in a frame. No library, no global.
{
  const script = document.currentScript
  if (script instanceof HTMLScriptElement) {
    const { origin } = new URL(script.src)
    const { label = 'Ask', title = 'Chat', theme = 'auto' } = script.dataset
    const button = document.createElement('button')
    const frame = document.createElement('iframe')
    const corner = {
      position: 'fixed',
      right: '1rem',
      zIndex: '2147483000',
      font: '600 1rem system-ui, sans-serif',
    }

    const setOpen = (isOpen) => {
      if (isOpen && !frame.src) frame.src = `${origin}/embed/chat?theme=${encodeURIComponent(theme)}`
      else if (isOpen) frame.contentWindow?.postMessage('dash:open', origin)
      frame.hidden = !isOpen
      frame.style.display = isOpen ? 'block' : 'none'
      button.setAttribute('aria-expanded', String(isOpen))
      if (isOpen) frame.focus()
      else button.focus()
    }

    button.type = 'button'
    button.textContent = label
    button.setAttribute('aria-expanded', 'false')
    button.setAttribute('aria-controls', 'dash-chat')
    Object.assign(button.style, corner, {
      bottom: '1rem',
      minHeight: '44px',
      padding: '0.5rem 1.25rem',
      border: '0',
      borderRadius: '0.5rem',
      background: '#0b57a4',
      color: '#ffffff',
      cursor: 'pointer',
    })
    button.addEventListener('click', () => setOpen(button.getAttribute('aria-expanded') !== 'true'))

    frame.id = 'dash-chat'
    frame.title = title
    // Without it, browsers block the button that copies an answer.
    frame.allow = 'clipboard-write'
    frame.hidden = true
    Object.assign(frame.style, corner, {
      display: 'none',
      bottom: '4.5rem',
      width: 'min(26rem, calc(100vw - 2rem))',
      height: 'min(40rem, calc(100vh - 6rem))',
      border: '1px solid #8886',
      borderRadius: '0.5rem',
      background: 'Canvas',
      colorScheme: 'light dark',
    })

    addEventListener('message', ({ source, origin: sender, data }) => {
      if (sender === origin && source === frame.contentWindow && data === 'dash:close') setOpen(false)
    })
    addEventListener('keydown', ({ key }) => {
      if (key === 'Escape' && !frame.hidden) setOpen(false)
    })
    // Below the page's own content, so that the button is reached last.
    const mount = () => document.body.append(frame, button)
    if (document.body) mount()
    else addEventListener('DOMContentLoaded', mount)
  }
}
