import type { RankedEvent, RankedYear, VerifiedTitle, YearEvent } from '../../../src/domain/year/rank.ts'

/**
 * A second ranking, written from decisions.md part 3 alone and as plainly as its sentences: every count is a
 * count over all events, every place is the number of events that come before. It shares only types with `src`.
 */

/** What the rule gives, and the keys of the events whose titles have to be asked for on the way. */
export interface NaiveOutcome {
  year: RankedYear
  asked: Set<string>
}

interface Place {
  event: YearEvent
  percentile: number
}

/** The parts by which places are ordered, each ascending: numbers, and texts by code units. */
type Key = readonly (number | string)[]

const NEWS = ['hn', 'lobsters', 'lesswrong'] as const
const COHORTS = new Set(['github', 'huggingface', 'reddit', 'replicate'])

/**
 * @param truth what every news source would answer, by save key
 */
export function naiveRanking(
  events: readonly YearEvent[],
  truth: ReadonlyMap<string, VerifiedTitle>,
): NaiveOutcome {
  const asked = new Set<string>()
  const titleOf = (event: YearEvent): VerifiedTitle => {
    if (event.titleProvenance !== null) return { title: event.title, provenance: event.titleProvenance }
    asked.add(naiveKey(event))
    const title = truth.get(naiveKey(event))
    if (!title) throw new Error(`nobody can vouch for ${naiveKey(event)}`)
    return title
  }
  const publish = (places: readonly Place[]): RankedEvent[] =>
    places.map(({ event, percentile }, index) => ({
      event,
      key: naiveKey(event),
      rank: index + 1,
      percentile,
      title: titleOf(event),
    }))
  const column = (source: string, members: readonly YearEvent[]): RankedEvent[] =>
    publish(inOrder(placesOf(members.filter((event) => event.source === source)), columnOrder).slice(0, 100))

  // Rule 7: hype and image events nobody vouched for are not eligible.
  const unverified = events.filter((event) => isHypeOrImage(event) && event.titleProvenance === null)
  const eligible = events.filter((event) => !unverified.includes(event))
  const sources = new Set(eligible.map((event) => event.source))
  const columns = {
    hn: column('hn', eligible),
    lobsters: column('lobsters', eligible),
    lesswrong: column('lesswrong', eligible),
  }
  const hype = naiveHype(eligible)
  return {
    year: {
      columns,
      hype: publish(hype.places),
      popular: publish(naivePopular(eligible, titleOf)),
      midjourney: column('midjourney', eligible),
      excludedCohorts: hype.excluded,
      unverified: unverified.length,
      eligible: new Map(
        [...sources].map((source) => [source, eligible.filter((e) => e.source === source).length]),
      ),
    },
    asked,
  }
}

/** Rule 4. */
function naiveHype(eligible: readonly YearEvent[]): {
  places: Place[]
  excluded: RankedYear['excludedCohorts']
} {
  const places: Place[] = []
  const excluded: RankedYear['excludedCohorts'] = []
  const providers = new Set(eligible.map(providerOf).filter((provider) => provider !== null))
  for (const provider of providers) {
    const cohort = eligible.filter((event) => providerOf(event) === provider)
    if (!COHORTS.has(provider) || cohort.length < 5) {
      excluded.push({ provider, eligibleEvents: cohort.length })
      continue
    }
    for (const event of cohort) {
      const lower = cohort.filter((other) => other.points < event.points).length
      const equal = cohort.filter((other) => other.points === event.points).length
      places.push({ event, percentile: (lower + equal / 2) / cohort.length })
    }
  }
  excluded.sort((a, b) => (a.provider < b.provider ? -1 : 1))
  return { places: inOrder(places, hypeOrder).slice(0, 100), excluded }
}

/** Rule 5. */
function naivePopular(eligible: readonly YearEvent[], titleOf: (event: YearEvent) => VerifiedTitle): Place[] {
  const all = NEWS.flatMap((source) => placesOf(eligible.filter((event) => event.source === source)))
  const taken: { url: string | null; title: string; place: Place }[] = []
  for (const place of inOrder(all, popularOrder)) {
    if (taken.length === 100) break
    const { url } = place.event
    if (url !== null && taken.some((other) => other.url === url)) continue
    const { title } = titleOf(place.event)
    if (taken.some((other) => other.title === title)) continue
    taken.push({ url, title, place })
  }
  return taken.map(({ place }) => place)
}

/** Each event of one source with `(L + E/2) / n` over the pair (points, comments). */
function placesOf(members: readonly YearEvent[]): Place[] {
  const pairs = members.map((event): Key => [event.points, commentsOf(event)])
  return members.map((event) => {
    const pair: Key = [event.points, commentsOf(event)]
    const lower = pairs.filter((other) => precedes(other, pair)).length
    const higher = pairs.filter((other) => precedes(pair, other)).length
    const equal = members.length - lower - higher
    return { event, percentile: (lower + equal / 2) / members.length }
  })
}

function inOrder(places: readonly Place[], keyOf: (place: Place) => Key): Place[] {
  const ordered: Place[] = []
  const keys = places.map(keyOf)
  for (const place of places) {
    const key = keyOf(place)
    ordered[keys.filter((other) => precedes(other, key)).length] = place
  }
  return ordered
}

function precedes(a: Key, b: Key): boolean {
  const at = a.findIndex((part, index) => part !== b[index])
  return at >= 0 && (a[at] ?? '') < (b[at] ?? '')
}

/** Rule 3. */
const columnOrder = ({ event }: Place): Key => [-event.points, -commentsOf(event), event.sourceId]

const hypeOrder = ({ event, percentile }: Place): Key => [
  -percentile,
  providerOf(event) ?? '',
  event.sourceId,
]

const popularOrder = ({ event, percentile }: Place): Key => [-percentile, -commentsOf(event), naiveKey(event)]

const commentsOf = (event: YearEvent): number => event.comments ?? 0

function providerOf(event: YearEvent): string | null {
  return event.source.startsWith('hype:') ? event.source.slice('hype:'.length) : null
}

function isHypeOrImage(event: YearEvent): boolean {
  return providerOf(event) !== null || event.source === 'midjourney'
}

/** `<prefix>-<sourceId>` of decisions.md, part 1. */
export function naiveKey(event: YearEvent): string {
  const provider = providerOf(event)
  return provider === null ? `${event.source}-${event.sourceId}` : `hype-${provider}-${event.sourceId}`
}
