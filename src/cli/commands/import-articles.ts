import { importArticles } from '../../jobs/import-articles.ts'
import type { LinesOptions } from '../../jobs/import-lines.ts'
import type { CommandContext } from '../context.ts'
import { importLinesCommand } from './import-lines.ts'

/** `dash import articles FILE… | -`; see {@link importLinesCommand}. */
export function importArticlesCommand(
  context: CommandContext,
  files: readonly string[],
  options: Omit<LinesOptions, 'signal'>,
): Promise<number> {
  return importLinesCommand(context, files, ({ stores, sources, onProgress }) =>
    importArticles({ articles: stores.articles, onProgress }, sources, {
      ...options,
      signal: context.signal,
    }),
  )
}
