import { isKnownSource } from './source.ts'

/**
 * The events a save key may name, likeliest first: a hype source's slug may itself hold hyphens, so that
 * `hype-hf-papers-1` is `papers-1` of `hype:hf` or `1` of `hype:hf-papers`.
 */
export function eventsOfKey(key: string): { source: string; sourceId: string }[] {
  const found: { source: string; sourceId: string }[] = []
  for (let at = key.indexOf('-'); at !== -1; at = key.indexOf('-', at + 1)) {
    const prefix = key.slice(0, at)
    const source = prefix.startsWith('hype-') ? `hype:${prefix.slice('hype-'.length)}` : prefix
    const sourceId = key.slice(at + 1)
    if (sourceId !== '' && isKnownSource(source)) found.push({ source, sourceId })
  }
  return found
}
