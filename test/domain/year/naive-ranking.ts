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

type Precedes = (a: Place, b: Place) => boolean

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
  excluded.sort((a, b) => (unitsBefore(a.provider, b.provider) ? -1 : 1))
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
  return members.map((event) => {
    const lower = members.filter((other) => pairBelow(other, event)).length
    const equal = members.filter((other) => !pairBelow(other, event) && !pairBelow(event, other)).length
    return { event, percentile: (lower + equal / 2) / members.length }
  })
}

function inOrder(places: readonly Place[], precedes: Precedes): Place[] {
  const ordered: Place[] = []
  for (const place of places) ordered[places.filter((other) => precedes(other, place)).length] = place
  return ordered
}

/** Rule 3. */
function columnOrder(a: Place, b: Place): boolean {
  if (pairBelow(b.event, a.event)) return true
  if (pairBelow(a.event, b.event)) return false
  return unitsBefore(a.event.sourceId, b.event.sourceId)
}

function hypeOrder(a: Place, b: Place): boolean {
  if (a.percentile !== b.percentile) return a.percentile > b.percentile
  const [left, right] = [providerOf(a.event) ?? '', providerOf(b.event) ?? '']
  return left === right ? unitsBefore(a.event.sourceId, b.event.sourceId) : unitsBefore(left, right)
}

function popularOrder(a: Place, b: Place): boolean {
  if (a.percentile !== b.percentile) return a.percentile > b.percentile
  if (commentsOf(a.event) !== commentsOf(b.event)) return commentsOf(a.event) > commentsOf(b.event)
  return unitsBefore(naiveKey(a.event), naiveKey(b.event))
}

function pairBelow(a: YearEvent, b: YearEvent): boolean {
  return a.points < b.points || (a.points === b.points && commentsOf(a) < commentsOf(b))
}

function commentsOf(event: YearEvent): number {
  return event.comments === null ? 0 : event.comments
}

/** Code-unit order, one unit after the other. */
function unitsBefore(a: string, b: string): boolean {
  for (let index = 0; index < Math.min(a.length, b.length); index += 1) {
    if (a.charCodeAt(index) !== b.charCodeAt(index)) return a.charCodeAt(index) < b.charCodeAt(index)
  }
  return a.length < b.length
}

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
