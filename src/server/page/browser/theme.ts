// Loaded before the first paint, so that the stored colours apply at once.
{
  const KEY = 'dash-theme'
  const root = document.documentElement
  root.classList.add('scripted')

  const apply = (theme: string | null) => {
    if (theme === 'light' || theme === 'dark') root.dataset['theme'] = theme
    else delete root.dataset['theme']
  }

  /** Reads the stored theme; if storage is forbidden, the choice lasts as long as the page. */
  const remembered = () => {
    try {
      return localStorage.getItem(KEY)
    } catch {
      return null
    }
  }

  const remember = (theme: string) => {
    try {
      localStorage.setItem(KEY, theme)
    } catch {
      // Storage is forbidden: the choice lasts as long as the page.
    }
  }

  if (!('themeFixed' in root.dataset)) apply(remembered())
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
