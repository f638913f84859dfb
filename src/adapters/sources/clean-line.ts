/**
 * One line of text for display: well-formed Unicode, no control or invisible formatting characters, white space
 * collapsed, cut at `maxLength` code points. null when nothing is left.
 */
export function cleanLine(text: string, maxLength: number): string | null {
  // Far more than can come into the line; a text of megabytes is not worked on.
  const line = text
    .slice(0, 8 * maxLength)
    .toWellFormed()
    .replaceAll(/[\p{Cc}\s]+/gu, ' ')
    .replaceAll(/(?![\u200c\u200d])\p{Cf}/gu, '')
    .trim()
  const characters = Array.from(line)
  const cut = characters.length > maxLength ? `${characters.slice(0, maxLength - 1).join('')}…` : line
  return cut === '' ? null : cut
}
