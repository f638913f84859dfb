import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { METRICS } from '../src/domain/metrics/catalogue.ts'

const read = (name: string): string =>
  readFileSync(fileURLToPath(new URL(`../${name}`, import.meta.url)), 'utf8')

/** What Prometheus itself adds to a metric. */
const OWN_LABELS = new Set(['instance', 'job', 'le'])

interface Dashboard {
  panels: { title: string; targets?: { expr: string }[] }[]
  templating: { list: { definition?: string }[] }
}

function dashboardExpressions(): string[] {
  const { panels, templating } = JSON.parse(read('ops/grafana/dash.json')) as Dashboard
  return [
    ...panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
    ...templating.list.flatMap(({ definition }) => definition ?? []),
  ]
}

function alertExpressions(): string[] {
  const rules = read('ops/prometheus/dash.rules.yml')
  return [...rules.matchAll(/^ +expr: (\|\n(?: {10,}.*\n)+|.*\n)/gm)].map(([, expr = '']) => expr)
}

/** Names of metrics in an expression, without what a histogram's parts add. */
function metricsIn(expression: string): string[] {
  const names = expression.match(/\b(?:dash|process|nodejs)_[a-z0-9_]+\b/g) ?? []
  return names.map((name) => (name in METRICS ? name : name.replace(/_(?:bucket|sum|count)$/, '')))
}

function labelsIn(expression: string): string[] {
  const selected = [...expression.matchAll(/\{([^{}]*)\}/g)].flatMap(([, list = '']) =>
    [...list.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label = '']) => label),
  )
  const grouped = [...expression.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(/,\s*/))
  return [...selected, ...grouped]
}

describe.each([
  ['the dashboard', dashboardExpressions()],
  ['the alerts', alertExpressions()],
])('%s', (_name, expressions) => {
  test('ask for metrics that there are, under labels that they have', () => {
    expect(expressions.length).toBeGreaterThan(15)
    for (const expression of expressions) {
      const names = metricsIn(expression)
      const labels = new Set(
        names.flatMap((name) => [...(METRICS[name as keyof typeof METRICS] ?? { labels: [] }).labels]),
      )
      expect(names.filter((name) => !(name in METRICS))).toEqual([])
      expect(labelsIn(expression).filter((label) => !labels.has(label) && !OWN_LABELS.has(label))).toEqual([])
    }
  })
})

test('a metric or label that there is not would be noticed', () => {
  expect(metricsIn('rate(dash_https_total[5m])').filter((name) => !(name in METRICS))).toEqual([
    'dash_https_total',
  ])
  expect(labelsIn('sum by (route, le) (x{path="/"})')).toEqual(['path', 'route', 'le'])
})

test('the page of metrics names each with its labels, and each alert', () => {
  const page = read('docs/monitoring.md')
  for (const [name, { labels }] of Object.entries(METRICS)) {
    const row = new RegExp(`^\\| \`${name}\` .*$`, 'm').exec(page)?.[0] ?? ''
    expect(row, name).not.toBe('')
    for (const label of labels) expect(row, name).toContain(`\`${label}\``)
  }
  const alerts = [...read('ops/prometheus/dash.rules.yml').matchAll(/- alert: (\w+)/g)].map(
    ([, name = '']) => name,
  )
  for (const alert of alerts) expect(page).toMatch(new RegExp(`^\\| \`${alert}\` `, 'm'))
})
