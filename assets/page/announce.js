/**
 * Tells those who do not see the page what has changed on it.
 *
 * @param {string} text
 */
export function announce(text) {
  const status = document.getElementById('announcements')
  if (status) status.textContent = text
}
