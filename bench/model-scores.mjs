/**
 * Measures the agreement of the metadata score, of each part and of the usual heuristic with published benchmark indices.
 *
 * Kendall's tau-b over the models of recorded catalogues of the routing service that carry an index
 * (`benchmarks.artificial_analysis`), read from `DASH_BENCH_CATALOGUES`: `*.json` or `*.json.gz`, each a whole response of
 * `GET /api/v1/models`, with the day of its capture in its name. The indices are the yardstick and never part of a score.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { parseCatalogue } from '../dist/adapters/router/facts.js'
import { METADATA_MAX, metadataComponents } from '../dist/domain/models/score.js'
import { filterCatalogue } from '../dist/domain/models/catalogue.js'

const INDICES = ['coding_index', 'agentic_index']

/** Kendall's tau-b; null where either side does not vary. */
function kendall(xs, ys) {
  let agreement = 0
  let variedX = 0
  let variedY = 0
  for (let i = 0; i < xs.length; i += 1) {
    for (let j = 0; j < i; j += 1) {
      const x = Math.sign(xs[i] - xs[j])
      const y = Math.sign(ys[i] - ys[j])
      agreement += x * y
      variedX += x * x
      variedY += y * y
    }
  }
  return variedX * variedY === 0 ? null : agreement / Math.sqrt(variedX * variedY)
}

const total = (parts) => parts.reduce((sum, { points }) => sum + points, 0)

/**
 * Values compared with an index: each part, the whole, the whole without each part, and context alone.
 *
 * @type {[string, (parts: any[], model: any) => number][]}
 */
const SCORES = [
  ['metadataScore', total],
  ...Object.keys(METADATA_MAX).map((name) => [
    name,
    (parts) => parts.find((part) => part.name === name).points,
  ]),
  ...Object.keys(METADATA_MAX).map((name) => [
    `metadataScore without ${name}`,
    (parts) => total(parts.filter((part) => part.name !== name)),
  ]),
  ['context length, uncapped', (_parts, model) => model.contextLength ?? 0],
  ['day of listing alone', (_parts, model) => model.createdAt ?? 0],
]

function cellsOf(file, folder) {
  const bytes = readFileSync(join(folder, file))
  const body = JSON.parse(file.endsWith('.gz') ? gunzipSync(bytes) : bytes)
  const day = /\d{4}-\d{2}-\d{2}/.exec(file)?.[0]
  if (day === undefined) throw new Error(`${file} does not name the day of its capture`)
  const now = Date.parse(`${day}T12:00:00.000Z`)
  const catalogue = parseCatalogue(JSON.stringify(body))
  if (catalogue === null) throw new Error(`${file} holds no catalogue`)
  const { models } = catalogue
  const eligible = new Set(filterCatalogue(models, now).eligible.map(({ id }) => id))
  const indexOf = new Map(body.data.map((row) => [row.id, row.benchmarks?.artificial_analysis ?? {}]))
  const text = models.filter(({ outputModalities }) => outputModalities.join() === 'text')
  /** @type {[string, typeof text][]} */
  const pools = [
    ['every text model', text],
    ['eligible free models', text.filter(({ id }) => eligible.has(id))],
  ]
  return pools.flatMap(([pool, members]) =>
    INDICES.flatMap((index) => {
      const known = members.filter(({ id }) => typeof indexOf.get(id)?.[index] === 'number')
      if (known.length < 5) return []
      const ys = known.map(({ id }) => indexOf.get(id)[index])
      const parts = known.map((model) => metadataComponents(model, now))
      const taus = SCORES.map(([, score]) =>
        kendall(
          parts.map((each, at) => score(each, known[at])),
          ys,
        ),
      )
      return [{ heading: `${day}, ${pool}, ${index.replace('_', ' ')} (n = ${known.length})`, taus }]
    }),
  )
}

const folder = process.env.DASH_BENCH_CATALOGUES
if (!folder) {
  console.error('DASH_BENCH_CATALOGUES must name a folder of recorded catalogues')
  process.exitCode = 1
} else {
  const columns = readdirSync(folder)
    .filter((name) => /\.json(?:\.gz)?$/.test(name))
    .sort()
    .flatMap((name) => cellsOf(name, folder))
  console.log(`| score | ${columns.map(({ heading }) => heading).join(' | ')} |`)
  console.log(`|---|${columns.map(() => '---:|').join('')}`)
  for (const [at, [name]] of SCORES.entries()) {
    const cells = columns.map(({ taus }) => (taus[at] === null ? 'same for all' : taus[at].toFixed(2)))
    console.log(`| ${name} | ${cells.join(' | ')} |`)
  }
}
