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

  const isFixed = 'themeFixed' in root.dataset
  if (!isFixed) apply(remembered())
  document.addEventListener('DOMContentLoaded', () => {
    const choices = [...document.querySelectorAll<HTMLInputElement>('input[name="theme"]')]
    const showChoice = () => {
      for (const choice of choices) choice.checked = choice.value === (root.dataset['theme'] ?? 'auto')
    }
    showChoice()
    for (const choice of choices)
      choice.addEventListener('change', () => {
        apply(choice.value)
        remember(choice.value)
      })
    addEventListener('pageshow', ({ persisted }) => {
      // A browser that goes back shows the page as it was left; another page may have stored a theme since.
      const theme = remembered()
      if (!persisted || isFixed || theme === null) return
      apply(theme)
      showChoice()
    })
  })
}
