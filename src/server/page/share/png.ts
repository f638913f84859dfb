import { fileURLToPath } from 'node:url'
import { LRUCache } from 'lru-cache'
import pLimit from 'p-limit'
import { sha256Hex } from '../../../domain/digest.ts'
import type { Refusal } from '../../../domain/refusal.ts'
import { publishedBody } from '../../respond.ts'
import type { PublishedBody } from '../../respond.ts'
import { RETRYABLE, retryLater } from '../../route.ts'

/** Cards kept: each has up to 100 KB. */
const CARDS_MAX = 64

/** Cards that may wait to be drawn: one takes about 20 ms on one core. */
export const WAITING_MAX = 16

/** Seconds after which a full queue has become shorter. */
const RETRY_SECONDS = 1

/** The refusal of {@link DrawCard}, for the contracts of its users. */
export const CARD_BUSY = {
  status: 503,
  when: `${WAITING_MAX} cards wait to be drawn, or twice as many requests for cards are open`,
  expected: true,
  ...RETRYABLE,
} as const

/** The refusal of a card while too many are asked for, with `retryAfterSeconds`. */
export const cardBusy = (): Refusal => retryLater('card_busy', RETRY_SECONDS)

export const CARD_CACHE = 'public, max-age=300'

/** Other pages may show a card. */
const HEADERS = { 'cross-origin-resource-policy': 'cross-origin', 'x-content-type-options': 'nosniff' }

const FONT_FAMILY = 'Roboto'
const FONTS = ['Regular', 'Bold'].map((weight) =>
  fileURLToPath(new URL(`../../../../assets/fonts/Roboto-${weight}.ttf`, import.meta.url)),
)

/**
 * Draws an SVG picture as PNG with the bundled fonts.
 *
 * @throws Refusal `card_busy` if too many cards wait, with `retryAfterSeconds`
 */
export type DrawCard = (svg: string) => Promise<PublishedBody>

/**
 * Cards are drawn one after another in a thread of the library, and kept by the digest of their SVG
 * (docs/decisions/0079-share-cards.md).
 */
export function cardDrawer(): DrawCard {
  const cards = new LRUCache<string, Promise<PublishedBody>>({ max: CARDS_MAX })
  const limit = pLimit(1)

  const draw = async (svg: string): Promise<PublishedBody> => {
    // A server that nobody asks for a card does not load the library.
    const { renderAsync } = await import('@resvg/resvg-js')
    const picture = await renderAsync(svg, {
      font: { fontFiles: FONTS, loadSystemFonts: false, defaultFontFamily: FONT_FAMILY },
    })
    return publishedBody(picture.asPng(), {
      contentType: 'image/png',
      cacheControl: CARD_CACHE,
      headers: HEADERS,
    })
  }

  return (svg) => {
    const digest = sha256Hex(svg)
    const known = cards.get(digest)
    if (known) return known
    if (limit.pendingCount >= WAITING_MAX) throw cardBusy()
    const drawn = limit(draw, svg)
    cards.set(digest, drawn)
    drawn.catch(() => cards.delete(digest))
    return drawn
  }
}
