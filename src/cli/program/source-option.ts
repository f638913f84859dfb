import { InvalidArgumentError, Option } from 'commander'
import { LIVE_SOURCES } from '../../domain/feed/live-source.ts'
import type { LiveSourceName } from '../../domain/feed/live-source.ts'
import { Refusal } from '../../domain/refusal.ts'

/** `--source` of `collect`: names after it, comma-separated, or the option again; each a live source. */
export function liveSourceOption(): Option {
  return new Option('--source <names...>', 'sources to collect from, default all')
    .choices(LIVE_SOURCES)
    .argParser(addLiveSources)
}

/**
 * `--source` of `search`: comma-separated, or the option again. It takes no names after the first, since words to look
 * for may stand there.
 */
export function searchSourceOption(): Option {
  return new Option('--source <sources>', 'only these sources, comma-separated; may be repeated').argParser(
    (value: string, before: string | undefined) => (before === undefined ? value : `${before},${value}`),
  )
}

/**
 * @throws Refusal `usage` for a word that is the bare name of a live source beside `--source`: nobody should look for
 *   the word who meant the source
 */
export function refuseStraySource(words: readonly string[]): void {
  const stray = words.find(isLiveSource)
  if (stray === undefined) return
  const mend = `name several as in --source hn,lobsters, or look for the word as '"${stray}"'`
  throw new Refusal('usage', `${stray} is a source but stands among the words: ${mend}`)
}

function addLiveSources(value: string, before: LiveSourceName[] = []): LiveSourceName[] {
  const names = value.split(',')
  const sources = names.filter(isLiveSource)
  if (sources.length < names.length) {
    throw new InvalidArgumentError(`Allowed choices are ${LIVE_SOURCES.join(', ')}.`)
  }
  return [...before, ...sources]
}

function isLiveSource(name: string): name is LiveSourceName {
  return (LIVE_SOURCES as readonly string[]).includes(name)
}
