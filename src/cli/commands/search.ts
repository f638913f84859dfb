import { LIVE_SOURCES } from '../../domain/feed/live-source.ts'
import { parseSearchRequest } from '../../domain/feed/search/search.ts'
import type { SearchHit, SearchQuery } from '../../domain/feed/search/search.ts'
import { Refusal } from '../../domain/refusal.ts'
import { requireFeed } from '../data-folder.ts'
import { EXIT } from '../exit-codes.ts'
import type { CommandContext } from '../context.ts'
import { escaped } from '../terminal.ts'

interface SearchFlags {
  /** Comma-separated. */
  source?: string
  minPoints?: string
  minComments?: string
  from?: string
  to?: string
  sort?: string
  limit?: string
}

const DAYS = 'an existing day (YYYY-MM-DD), --from not after --to'
const MINIMUM = 'a whole number of at most nine digits'

/** Flags and what they must be, by the parameter of the search. */
const FORMS: Readonly<Record<string, readonly [flag: string, form: string]>> = {
  source: ['--source', 'sources, comma-separated, such as hn,lobsters'],
  minPoints: ['--min-points', MINIMUM],
  minComments: ['--min-comments', MINIMUM],
  from: ['--from', DAYS],
  to: ['--to', DAYS],
  limit: ['--limit', 'a whole number from 1 to 100'],
}

export async function searchCommand(
  { config, container, terminal }: CommandContext,
  flags: SearchFlags,
  words: readonly string[],
): Promise<number> {
  if (flags.source !== undefined) refuseSourceAsWord(words)
  const query = parseQuery(words, flags)
  requireFeed(config)
  const search = await container.search()
  const page = await search.by({ group: 'others', signal: null }).search(query)
  terminal.result(page, page.items.length === 0 ? 'nothing found' : page.items.map(describe).join('\n'))
  return EXIT.done
}

/** Refuses a source among the words, which was probably meant for `--source`. */
function refuseSourceAsWord(words: readonly string[]): void {
  const misplaced = words.find((word) => LIVE_SOURCES.some((source) => source === word))
  if (misplaced === undefined) return
  const mend = `write --source hn,lobsters for several sources, or '"${misplaced}"' to search for the word`
  throw new Refusal('usage', `the word ${misplaced} is the name of a source; ${mend}`)
}

function parseQuery(words: readonly string[], flags: SearchFlags): SearchQuery {
  const params = new URLSearchParams({ q: words.join(' ') })
  for (const name of ['source', 'minPoints', 'minComments', 'from', 'to', 'sort', 'limit'] as const) {
    const value = flags[name]
    if (value !== undefined) params.set(name, value)
  }
  try {
    return parseSearchRequest(params)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    const { parameter = '', value } = error.members
    const [flag, form] = FORMS[parameter] ?? []
    const message = flag
      ? `${flag} ${JSON.stringify(value)} must be ${form}`
      : 'give at least one word and at most 1000 characters'
    throw new Refusal('usage', message, { cause: error })
  }
}

function describe({ day, key, points, title }: SearchHit): string {
  return `${day}  ${escaped(key)}  ${points ?? '-'}  ${escaped(title)}`
}
