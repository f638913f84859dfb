import { DAY_MS, formatInstant } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import type { PageItem, RowNotes } from './feed-items.ts'
import { NOTHING, html } from './html.ts'
import type { Html } from './html.ts'

/** Anchor of the first new row. */
const FIRST_NEW = 'new'

/** Start of the stay of an item: one whose entry is not known cannot have been listed before it was published. */
function enteredAt({ listedSince, publishedAt }: PageItem): string {
  return listedSince ?? publishedAt ?? ''
}

/**
 * The marks of the rows that entered the lists of a live period within the last 24 hours, and the line that counts them
 * and leads to the first. A browser that knows the snapshot it saw last marks what entered since then instead
 * (browser/news.ts).
 *
 * @param items the shown items in their order
 */
export function newItems(
  items: readonly PageItem[],
  generatedAt: Instant,
  now: Instant,
): { notes: RowNotes; line: Html } {
  const since = formatInstant(now - DAY_MS)
  const entered = items.filter((item) => enteredAt(item) > since)
  const [first] = entered
  const text = `${first ? entered.length : 'nothing'} new since yesterday ${since.slice(11, 16)} UTC`
  return {
    notes(_column, item) {
      const isNew = enteredAt(item) > since
      const id = item.key === first?.key ? html`id="${FIRST_NEW}"` : NOTHING
      const mark = html`<span class="${isNew ? 'rose new' : ''}" data-entered="${enteredAt(item)}" ${id}
        >${isNew ? 'NEW' : ''}</span
      >`
      return { mark, note: NOTHING }
    },
    line: html`<small class="news" data-snapshot="${formatInstant(generatedAt)}"
      >${first ? html`<a href="#${FIRST_NEW}">${text}</a>` : text}</small
    >`,
  }
}
