import { parseArticle } from '../domain/feed/article.ts'
import type { Article } from '../domain/feed/article.ts'
import type { ArticleStore, LineSource } from '../domain/ports.ts'
import { importLines } from './import-lines.ts'
import type { LinesOptions, LinesReport } from './import-lines.ts'

export interface ArticleImportPorts {
  articles: Pick<ArticleStore, 'saveArticles'>
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
  return importLines<Article, never>(
    {
      parse(value) {
        const parsed = parseArticle(value)
        return parsed.kind === 'bad' ? parsed : { kind: 'row', row: parsed.article }
      },
      store: (batch) => articles.saveArticles(batch),
      batchRows: BATCH_ROWS,
      onProgress,
    },
    sources,
    options,
  )
}
