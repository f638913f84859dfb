import { parseArticle } from '../domain/feed/article.ts'
import type { Article, KeyedArticle } from '../domain/feed/article.ts'
import type { ItemRef } from '../domain/feed/source.ts'
import type { ArticleStore, LineSource } from '../domain/ports.ts'
import { importLines } from './import-lines.ts'
import type { LinesOptions, LinesReport } from './import-lines.ts'

export interface ArticleImportPorts {
  articles: Pick<ArticleStore, 'saveArticles' | 'storedItems'>
  /** Called after each batch with the rows read so far. */
  onProgress: (rows: number) => void
}

/** A text has at most a quarter of a megabyte, so that a batch is no larger than what a server takes at once. */
const BATCH_ROWS = 20

/** Imports article texts; see {@link importLines}. Idempotent. */
export function importArticles(
  { articles, onProgress }: ArticleImportPorts,
  sources: readonly LineSource[],
  options: LinesOptions,
): Promise<LinesReport> {
  return importLines<KeyedArticle, never>(
    {
      parse(value) {
        const parsed = parseArticle(value)
        return parsed.kind === 'bad' ? parsed : { kind: 'row', row: parsed.article }
      },
      store: async (batch) => articles.saveArticles(await ofStoredItems(articles, batch)),
      batchRows: BATCH_ROWS,
      onProgress,
    },
    sources,
    options,
  )
}

/** Each text for the likeliest item of its key that is stored, or for the likeliest where none is. */
async function ofStoredItems(
  articles: ArticleImportPorts['articles'],
  batch: readonly KeyedArticle[],
): Promise<Article[]> {
  const open = batch.flatMap(({ items }) => (items.length > 1 ? items : []))
  const stored = new Set((open.length > 0 ? await articles.storedItems(open) : []).map(textOf))
  return batch.flatMap(({ items, ...article }) => {
    const item = items.find((each) => stored.has(textOf(each))) ?? items[0]
    return item ? [{ ...item, ...article }] : []
  })
}

function textOf({ source, sourceId }: ItemRef): string {
  return JSON.stringify([source, sourceId])
}
