import { isHttpUrl } from '../../domain/address.ts'
import { COLUMN_NAMES } from '../../domain/feed/columns.ts'
import type { ColumnName } from '../../domain/feed/columns.ts'

/** The displayed fields of an item of a live period or the Year. */
export interface PageItem {
  key: string
  /** Rank in its list; undefined for a result of the search. */
  rank?: number
  source: string
  title: string
  url: string | null
  discussionUrl: string | null
  points: number | null
  comments: number | null
  publishedAt: string | null
}

/** The lists of a live period or of a Year. */
export type PageLists = Readonly<Record<ColumnName, readonly PageItem[]>>

/** An item of a list, and the best item of each other source with the same URL. */
export interface Story {
  item: PageItem
  others: readonly PageItem[]
}

/** The part of a list that the overview shows. */
export interface OverviewColumn {
  name: ColumnName
  stories: readonly Story[]
  /** Number of items of the whole list. */
  total: number
}

/** Stories of the overview, by list. */
const LENGTHS = { popular: 20, others: 10 }

/** The first stories of each list, each story once: in the first list that has it. */
export function overviewOf(lists: PageLists): OverviewColumn[] {
  const bySource = itemsByStory(lists)
  const shown = new Set<string>()
  return COLUMN_NAMES.map((name) => {
    const stories: Story[] = []
    for (const item of lists[name]) {
      if (stories.length === (name === 'popular' ? LENGTHS.popular : LENGTHS.others)) break
      const story = storyOf(item)
      if (shown.has(story)) continue
      shown.add(story)
      const others = [...(bySource.get(story)?.values() ?? [])].filter(({ source }) => source !== item.source)
      stories.push({ item, others })
    }
    return { name, stories, total: lists[name].length }
  })
}

/** The best item of each source by story. The lists of one source come in the order of their ranks. */
function itemsByStory(lists: PageLists): ReadonlyMap<string, ReadonlyMap<string, PageItem>> {
  const byStory = new Map<string, Map<string, PageItem>>()
  for (const item of COLUMN_NAMES.flatMap((name) => lists[name])) {
    const story = storyOf(item)
    const bySource = byStory.get(story) ?? new Map<string, PageItem>()
    if (!bySource.has(item.source)) bySource.set(item.source, item)
    byStory.set(story, bySource)
  }
  return byStory
}

/** Items with equal results link to the same page: scheme, `www.`, a trailing slash and the fragment do not matter. */
function storyOf({ key, url }: PageItem): string {
  if (url === null || !isHttpUrl(url)) return `key ${key}`
  const { host, pathname, search } = new URL(url)
  return host.replace(/^www\./, '') + pathname.replace(/\/$/, '') + search
}
