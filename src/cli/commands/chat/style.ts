/** How text is shown: begin and end of each SGR attribute that is used. */
const SGR = {
  bold: [1, 22],
  dim: [2, 22],
  italic: [3, 23],
  underline: [4, 24],
  strike: [9, 29],
  cyan: [36, 39],
  yellow: [33, 39],
} as const

export type Style = keyof typeof SGR

/** A text with its styles on; as it is where styles are not to be shown. */
export function styled(text: string, styles: readonly Style[], colored: boolean): string {
  if (!colored || text === '') return text
  const begin = styles.map((style) => `\x1b[${SGR[style][0]}m`).join('')
  const end = styles.map((style) => `\x1b[${SGR[style][1]}m`).join('')
  return `${begin}${text}${end}`
}
