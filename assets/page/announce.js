/**
 * Announces a change of the page to screen readers.
 *
 * @param {string} text
 */
export function announce(text) {
  const status = document.getElementById('announcements')
  if (status) status.textContent = text
}
