import { LIVE_SOURCES } from '../../domain/feed/live-source.ts'
import { LOCAL_CALLER, parseSearchRequest } from '../../domain/feed/search.ts'
import type { SearchHit, SearchQuery } from '../../domain/feed/search.ts'
import { Refusal } from '../../domain/refusal.ts'
import { requireFeed } from '../data-folder.ts'
import { EXIT } from '../exit-codes.ts'
import type { CommandContext } from '../context.ts'
import { escaped } from '../terminal.ts'

export interface SearchFlags {
  /** Comma-separated. */
  source?: string
  from?: string
  to?: string
  limit?: string
}

/** What a flag that the route would refuse is told to be. */
const MEND: Readonly<Record<string, string>> = {
  invalid_query: 'name at least one word to look for, and at most 1000 characters',
  invalid_source: '--source takes sources, comma-separated, as in hn,lobsters',
  invalid_time: '--from and --to take real days, YYYY-MM-DD, in order',
  invalid_limit: '--limit takes an integer from 1 to 100',
}

/**
 * `dash search WORDS…`
 *
 * @throws Refusal `usage` for a flag that is wrong; refusals and faults of the stores
 */
export async function searchCommand(
  { config, container, terminal }: CommandContext,
  words: readonly string[],
  flags: SearchFlags,
): Promise<number> {
  if (flags.source !== undefined) refuseStraySource(words)
  const query = parseQuery(words, flags)
  requireFeed(config)
  const search = await container.search()
  const page = await search.by(LOCAL_CALLER).search(query)
  terminal.result(page, page.items.length === 0 ? 'nothing found' : page.items.map(describe).join('\n'))
  return EXIT.done
}

/** A source among the words was meant for `--source`: nobody should look for its name by mistake. */
function refuseStraySource(words: readonly string[]): void {
  const stray = words.find((word) => LIVE_SOURCES.some((source) => source === word))
  if (stray === undefined) return
  const mend = `name several as in --source hn,lobsters, or look for the word as '"${stray}"'`
  throw new Refusal('usage', `${stray} is a source but stands among the words: ${mend}`)
}

function parseQuery(words: readonly string[], flags: SearchFlags): SearchQuery {
  const params = new URLSearchParams({ q: words.join(' ') })
  for (const name of ['source', 'from', 'to', 'limit'] as const) {
    const value = flags[name]
    if (value !== undefined) params.set(name, value)
  }
  try {
    return parseSearchRequest(params)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    throw new Refusal('usage', MEND[error.code] ?? error.code, { cause: error })
  }
}

function describe({ day, key, points, title }: SearchHit): string {
  return `${day}  ${escaped(key)}  ${points ?? '-'}  ${escaped(title)}`
}
