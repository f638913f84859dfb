import type { Day } from '../../../domain/time.ts'
import type { Comparison } from '../../../domain/year/history/calendar.ts'
import type { YearItem } from '../../../domain/year/schema.ts'
import { html } from '../html.ts'
import type { Html } from '../html.ts'

/** Sizes of the chart, in pixels; its plot has a share of the width, and the titles have the rest. */
const ROW = 24
const LABEL = 16
const HEAD = 24
const LEFT = 40
const PLOT_END = '34%'

type Move = Comparison<YearItem>['moved'][number]

/** An item that moved, and its place in the chart. */
interface Slope {
  move: Move
  /** Ordinates of its ranks, and of the labels beside them. */
  earlier: number
  later: number
  earlierLabel: number
  laterLabel: number
}

/**
 * Draws the ranks of items then and now as lines between two days. Colours come from the stylesheet.
 *
 * @param days as-of days of both publications
 */
export function slopeChart(moves: readonly Move[], days: readonly [Day, Day]): Html {
  const height = HEAD + Math.max(2, moves.length) * ROW + ROW
  const [then, now] = days
  return html`<svg
    class="slopes"
    width="100%"
    height="${height}"
    role="img"
    aria-label="Ranks of the biggest moves on ${then} and ${now}; the table below has the same numbers"
  >
    <text x="10" y="16">${then}</text>
    <text x="${PLOT_END}" dx="10" y="16">${now}</text>
    ${slopesOf(moves, height).map(slopeLine)}
  </svg>`
}

function slopeLine({ move, earlier, later, earlierLabel, laterLabel }: Slope): Html {
  const { before, after, rose } = move
  return html`<g class="rose ${rose > 0 ? 'up' : 'down'}">
    <line x1="${LEFT}" x2="${PLOT_END}" y1="${earlier}" y2="${later}" />
    <circle cx="${LEFT}" cy="${earlier}" r="3" />
    <circle cx="${PLOT_END}" cy="${later}" r="3" />
    <text x="${LEFT - 10}" y="${earlierLabel + 4}" text-anchor="end">${before.rank}</text>
    <text x="${PLOT_END}" dx="10" y="${laterLabel + 4}">${after.rank} ${after.title}</text>
  </g>`
}

/** Places the ranks on a scale from the best to the worst of them, and their labels without overlaps. */
function slopesOf(moves: readonly Move[], height: number): Slope[] {
  const ranks = moves.flatMap(({ before, after }) => [before.rank, after.rank])
  const [best, worst] = [Math.min(...ranks), Math.max(...ranks)]
  const [top, bottom] = [HEAD + ROW / 2, height - ROW / 2]
  const yOf = ({ rank }: YearItem): number =>
    Math.round(top + ((rank - best) * (bottom - top)) / Math.max(1, worst - best))
  const places = moves.map((move) => ({ move, earlier: yOf(move.before), later: yOf(move.after) }))
  const earlierLabels = spread(
    places.map(({ earlier }) => earlier),
    bottom,
  )
  const laterLabels = spread(
    places.map(({ later }) => later),
    bottom,
  )
  return places.map((place, index) => ({
    ...place,
    earlierLabel: earlierLabels[index] ?? place.earlier,
    laterLabel: laterLabels[index] ?? place.later,
  }))
}

/** Moves ordinates apart until a label fits between neighbours, each group of close ones about its middle. */
function spread(places: readonly number[], bottom: number): number[] {
  const order = [...places.keys()].sort((a, b) => (places[a] ?? 0) - (places[b] ?? 0))
  // Groups of labels without space between them: their indexes, and the ordinate of the first.
  const groups: { indexes: number[]; start: number }[] = []
  for (const index of order) {
    let group = { indexes: [index], start: places[index] ?? 0 }
    for (let last = groups.at(-1); last && endOf(last) > group.start; last = groups.at(-1)) {
      groups.pop()
      group = centred([...last.indexes, ...group.indexes])
    }
    groups.push(group)
  }
  const spreadPlaces = groups.flatMap(({ indexes, start }) =>
    indexes.map((index, place) => [index, start + place * LABEL] as const),
  )
  return spreadPlaces.sort(([a], [b]) => a - b).map(([, place]) => Math.round(place))

  function endOf({ indexes, start }: { indexes: number[]; start: number }): number {
    return start + indexes.length * LABEL
  }

  function centred(indexes: number[]): { indexes: number[]; start: number } {
    const middle = indexes.reduce((sum, index) => sum + (places[index] ?? 0), 0) / indexes.length
    const height = (indexes.length - 1) * LABEL
    return { indexes, start: Math.min(middle - height / 2, bottom - height) }
  }
}
