import { importArticles } from '../../jobs/import-articles.ts'
import type { ArticleImportPorts } from '../../jobs/import-articles.ts'
import type { LinesOptions } from '../../jobs/import-lines.ts'
import type { CommandContext } from '../context.ts'
import { importLinesCommand } from './import-lines.ts'

/** `dash import articles FILE… | -`; see {@link importLinesCommand}. */
export function importArticlesCommand(
  context: CommandContext,
  files: readonly string[],
  options: Omit<LinesOptions, 'signal'>,
): Promise<number> {
  return importLinesCommand(context, files, {
    run({ stores, sources, onProgress }) {
      const articles: ArticleImportPorts['articles'] = {
        saveArticles: (batch) => stores().articles.saveArticles(batch),
        storedItems: (items) => stores().articles.storedItems(items),
      }
      return importArticles({ articles, onProgress }, sources, { ...options, signal: context.signal })
    },
  })
}
