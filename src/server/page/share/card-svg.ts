import { firstCodePoints } from '../../../domain/text.ts'
import { xml } from '../../feed/formats.ts'
import type { Xml } from '../../feed/formats.ts'

/** Size of a share card in pixels, as previews expect it. */
export const CARD_SIZE = { width: 1_200, height: 630 }

const LEFT = 72
const COLOURS = { ground: '#fdfcf9', ink: '#16181b', soft: '#595e67', accent: '#0b57a4', line: '#e2dfd8' }

/** Characters that the fonts of the cards lack, such as emoji; a title of another script would be empty boxes. */
const UNDRAWABLE =
  /[^\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{Nd}\p{Pc}\p{Pd}\p{Ps}\p{Pe}\p{Pi}\p{Pf}\p{Po}\p{Sc}\p{Sm} ]/gu

/** Code points that are considered of a title, drawable or not. */
const CONSIDERED = 400

/** A text as a card shows it: one line of drawable characters, or the given name if none is left. */
function drawable(text: string, otherwise: string): string {
  const shown = firstCodePoints(text, CONSIDERED).replace(UNDRAWABLE, ' ').replace(/\s+/g, ' ').trim()
  return /[\p{L}\p{N}]/u.test(shown) ? shown : otherwise
}

/** Widths of characters in the bold font as parts of its size, rather too large than too small; others are {@link OTHER_WIDTH}. */
const WIDTHS: readonly (readonly [characters: RegExp, width: number])[] = [
  [/[ijl .,:;!'’|[\]]/, 0.3],
  [/[tfr()/"-]/, 0.4],
  [/[@MWm…—]|[МЫЮЖШЩмыюжшщ]/, 1.03],
  [/[\p{Lu}w%&]/u, 0.83],
]
const OTHER_WIDTH = 0.64

function widthOf(character: string): number {
  return WIDTHS.find(([characters]) => characters.test(character))?.[1] ?? OTHER_WIDTH
}

/** The longest beginning of a text of at most some width, as a multiple of the size of the font. */
function beginningOf(text: string, width: number): string {
  let [left, beginning] = [width, '']
  for (const character of text) {
    left -= widthOf(character)
    if (left < 0) break
    beginning += character
  }
  return beginning
}

function shortened(text: string, width: number): string {
  return beginningOf(text, width) === text ? text : `${beginningOf(text, width - 1).trimEnd()}…`
}

/** What every card says besides its content. */
export interface CardFrame {
  /** Of the site, with the prefix of the demo. */
  name: string
  heading: string
  /** Last line. */
  footer: string
}

function card({ name, heading, footer }: CardFrame, content: Xml): string {
  const { width, height } = CARD_SIZE
  return xml`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="Roboto">
<rect width="${width}" height="${height}" fill="${COLOURS.ground}"/>
<rect width="${width}" height="12" fill="${COLOURS.accent}"/>
<text x="${LEFT}" y="92" font-size="34" font-weight="700" fill="${COLOURS.accent}">${name}</text>
<text x="${width - LEFT}" y="92" font-size="28" text-anchor="end" fill="${COLOURS.soft}">${heading}</text>
<path d="M${LEFT} 122H${width - LEFT}M${LEFT} 554H${width - LEFT}" stroke="${COLOURS.line}" stroke-width="2"/>
${content}
<text x="${LEFT}" y="594" font-size="24" fill="${COLOURS.soft}">${footer}</text>
</svg>
`.xml
}

/** Rows of a list on a card, and the size and indent of their titles. */
const ROWS = 5
const ROW_SIZE = 36
const ROW_INDENT = 48
const ROW_WIDTH = (CARD_SIZE.width - 2 * LEFT - ROW_INDENT) / ROW_SIZE

interface CardRow {
  title: string
  /** Source and points. */
  facts: string
}

/** The card of a list: its first items. */
export function listCard(frame: CardFrame, rows: readonly CardRow[]): string {
  const content = rows.slice(0, ROWS).map(({ title, facts }, index) => {
    const y = 180 + index * 80
    return xml`<text x="${LEFT}" y="${y}" font-size="${ROW_SIZE}" font-weight="700" fill="${COLOURS.accent}">${index + 1}</text>
<text x="${LEFT + ROW_INDENT}" y="${y}" font-size="${ROW_SIZE}" font-weight="700" fill="${COLOURS.ink}">${shortened(drawable(title, 'A story in another script'), ROW_WIDTH)}</text>
<text x="${LEFT + ROW_INDENT}" y="${y + 32}" font-size="24" fill="${COLOURS.soft}">${facts}</text>
`
  })
  return card(frame, xml`${content}`)
}

/** Lines of the title on the card of an item, and their size. */
const TITLE_LINES = 4
const TITLE_SIZE = 60
const TITLE_WIDTH = (CARD_SIZE.width - 2 * LEFT) / TITLE_SIZE

/** The card of one item. @param facts lines under the title */
export function itemCard(frame: CardFrame, title: string, facts: readonly string[]): string {
  const lines = wrapped(drawable(title, 'A story in another script'))
  const under = 196 + lines.length * 72
  return card(
    frame,
    xml`${lines.map((line, index) => xml`<text x="${LEFT}" y="${206 + index * 72}" font-size="${TITLE_SIZE}" font-weight="700" fill="${COLOURS.ink}">${line}</text>\n`)}
${facts.map((fact, index) => xml`<text x="${LEFT}" y="${under + index * 42}" font-size="30" fill="${COLOURS.soft}">${fact}</text>\n`)}`,
  )
}

/** Breaks a title into lines, a word only if it is longer than a line; the last line ends with … if text is left. */
function wrapped(title: string): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of title.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`
    const isLonger = beginningOf(longer, TITLE_WIDTH) !== longer
    if (isLonger && line !== '') lines.push(line)
    line = isLonger ? word : longer
    let beginning = beginningOf(line, TITLE_WIDTH)
    while (beginning !== line) {
      lines.push(beginning)
      line = line.slice(beginning.length)
      beginning = beginningOf(line, TITLE_WIDTH)
    }
  }
  if (line !== '') lines.push(line)
  if (lines.length <= TITLE_LINES) return lines
  const last = lines.slice(TITLE_LINES - 1, TITLE_LINES + 1).join(' ')
  return [...lines.slice(0, TITLE_LINES - 1), shortened(last, TITLE_WIDTH)]
}
