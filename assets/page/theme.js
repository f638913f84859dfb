// Loaded before anything is painted, so that remembered colours never flash.
{
  const KEY = 'dash-theme'
  const root = document.documentElement
  root.classList.add('scripted')

  /** @param {string | null} theme */
  const apply = (theme) => {
    if (theme === 'light' || theme === 'dark') root.dataset['theme'] = theme
    else delete root.dataset['theme']
  }

  /** Storage may be forbidden; then the choice lasts as long as the page. */
  const remembered = () => {
    try {
      return localStorage.getItem(KEY)
    } catch {
      return null
    }
  }

  /** @param {string} theme */
  const remember = (theme) => {
    try {
      localStorage.setItem(KEY, theme)
    } catch {
      // Not remembered: see above.
    }
  }

  apply(remembered())
  document.addEventListener('DOMContentLoaded', () => {
    for (const choice of document.querySelectorAll('input[name="theme"]')) {
      if (!(choice instanceof HTMLInputElement)) continue
      choice.checked = choice.value === (root.dataset['theme'] ?? 'auto')
      choice.addEventListener('change', () => {
        apply(choice.value)
        remember(choice.value)
      })
    }
  })
}
