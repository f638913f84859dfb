import { publishedText } from '../../domain/models/schema.ts'
import { statusPayload } from '../../domain/models/shortlist.ts'
import type { Served } from '../../domain/models/shortlist.ts'
import type { Instant } from '../../domain/time.ts'
import { xml } from '../feed/feeds.ts'
import type { Xml } from '../feed/feeds.ts'

/** Longest id that is drawn; a longer one is cut by code point. */
const ID_MAX_LENGTH = 60

/** Estimated width of a character at the badge's size, in pixels; the texts are fitted to it when drawn. */
const CHARACTER_WIDTH = 6.6
const PADDING = 6
const HEIGHT = 20

const LABEL = 'free model'

/** Dark enough for white text on each of them. */
const COLOURS = { fresh: '#17642f', stale: '#804500', seed: '#585d66' } as const

/** The recommended model as a picture of one line. It says so when the recommendation is stale, or the built-in seed. */
export function badgeSvg(served: Served, demo: boolean, now: Instant): string {
  const { primary, ok, usingSeedFallback } = statusPayload(served, now)
  const state = usingSeedFallback ? 'seed' : ok ? 'fresh' : 'stale'
  const id = publishedText(primary, ID_MAX_LENGTH)
  const value = state === 'fresh' ? id : `${id} (${state})`
  const label = demo ? `DEMO: ${LABEL}` : LABEL
  const labelWidth = widthOf(label)
  const valueWidth = widthOf(value)
  const width = labelWidth + valueWidth
  return xml`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${HEIGHT}" role="img" aria-label="${label}: ${value}">
<title>${label}: ${value}</title>
<rect width="${width}" height="${HEIGHT}" rx="3" fill="#33383e"/>
<path d="M${labelWidth} 0h${valueWidth - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3H${labelWidth}z" fill="${COLOURS[state]}"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
${textAt(label, PADDING)}${textAt(value, labelWidth + PADDING)}</g>
</svg>
`.xml
}

function textAt(text: string, x: number): Xml {
  const length = widthOf(text) - 2 * PADDING
  return xml`<text x="${x}" y="14" textLength="${length}" lengthAdjust="spacingAndGlyphs">${text}</text>\n`
}

function widthOf(text: string): number {
  return Math.round(Array.from(text).length * CHARACTER_WIDTH) + 2 * PADDING
}
