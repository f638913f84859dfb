/** Longest text of a report, in characters: input and replies are not to be repeated at length. */
const TEXT_MAX_LENGTH = 400

/** A text short enough for a report, and on one line; `…` at its end where some of it was left out. */
export function shorten(text: string): string {
  // A text of many megabytes need not be taken apart to see that it is too long.
  const start = text.slice(0, 2 * TEXT_MAX_LENGTH + 1)
  const characters = Array.from(start.replaceAll(/\s+/g, ' '))
  const isCut = characters.length > TEXT_MAX_LENGTH || start.length < text.length
  return characters.slice(0, TEXT_MAX_LENGTH).join('') + (isCut ? '…' : '')
}
