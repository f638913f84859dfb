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

function shortened(text: string, length: number): string {
  const start = firstCodePoints(text, length)
  return start === text ? text : `${start.trimEnd()}…`
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

/** Rows of a list on a card, and the longest title in a row, in code points. */
const ROWS = 5
const ROW_LENGTH = 56

interface CardRow {
  title: string
  /** Source and points. */
  facts: string
}

/** The card of a list: its first items. */
export function listCard(frame: CardFrame, rows: readonly CardRow[]): string {
  const content = rows.slice(0, ROWS).map(({ title, facts }, index) => {
    const y = 180 + index * 80
    return xml`<text x="${LEFT}" y="${y}" font-size="36" font-weight="700" fill="${COLOURS.accent}">${index + 1}</text>
<text x="${LEFT + 48}" y="${y}" font-size="36" font-weight="700" fill="${COLOURS.ink}">${shortened(drawable(title, 'A story in another script'), ROW_LENGTH)}</text>
<text x="${LEFT + 48}" y="${y + 32}" font-size="24" fill="${COLOURS.soft}">${facts}</text>
`
  })
  return card(frame, xml`${content}`)
}

/** Lines of the title on the card of an item, and the longest of them, in code points. */
const TITLE_LINES = 4
const LINE_LENGTH = 34

/** The card of one item. @param facts lines under the title */
export function itemCard(frame: CardFrame, title: string, facts: readonly string[]): string {
  const lines = wrapped(drawable(title, 'A story in another script'))
  const under = 196 + lines.length * 72
  return card(
    frame,
    xml`${lines.map((line, index) => xml`<text x="${LEFT}" y="${206 + index * 72}" font-size="60" font-weight="700" fill="${COLOURS.ink}">${line}</text>\n`)}
${facts.map((fact, index) => xml`<text x="${LEFT}" y="${under + index * 42}" font-size="30" fill="${COLOURS.soft}">${fact}</text>\n`)}`,
  )
}

/** Breaks a title into lines of whole words; a longer word is cut, and the last line ends with … if text is left. */
function wrapped(title: string): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of title.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`
    if (Array.from(longer).length <= LINE_LENGTH) line = longer
    else {
      if (line !== '') lines.push(line)
      line = shortened(word, LINE_LENGTH - 1)
    }
  }
  if (line !== '') lines.push(line)
  if (lines.length <= TITLE_LINES) return lines
  return [...lines.slice(0, TITLE_LINES - 1), `${lines[TITLE_LINES - 1] ?? ''}…`]
}
