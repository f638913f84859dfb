import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Registry, collectDefaultMetrics } from 'prom-client'
import { describe, expect, test } from 'vitest'
import { JOBS } from '../src/cli/commands/init/units.ts'
import { REQUIRED_TOKENS } from '../src/cli/settings/config.ts'
import { LIVE_SOURCES } from '../src/domain/feed/live-source.ts'
import { METRICS } from '../src/server/metrics/instruments.ts'

const read = (name: string): string =>
  readFileSync(fileURLToPath(new URL(`../${name}`, import.meta.url)), 'utf8')

/** Labels that Prometheus adds to a metric. */
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

/** Metrics of dash, and those of the process. */
const registry = new Registry()
collectDefaultMetrics({ register: registry })
const KNOWN: Readonly<Record<string, { labels: readonly string[] }>> = {
  ...METRICS,
  ...Object.fromEntries(registry.getMetricsAsArray().map(({ name }) => [name, { labels: [] }])),
}

/** Returns the metric names in an expression, without the suffixes of histograms. */
function metricsIn(expression: string): string[] {
  const names = expression.match(/\b(?:dash|process|nodejs)_[a-z0-9_]+\b/g) ?? []
  return names.map((name) => (name in KNOWN ? name : name.replace(/_(?:bucket|sum|count)$/, '')))
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
  test('expressions use existing metrics and labels', () => {
    expect(expressions.length).toBeGreaterThan(15)
    for (const expression of expressions) {
      const names = metricsIn(expression)
      const labels = new Set(names.flatMap((name) => [...(KNOWN[name]?.labels ?? [])]))
      expect(names.filter((name) => !(name in KNOWN))).toEqual([])
      expect(labelsIn(expression).filter((label) => !labels.has(label) && !OWN_LABELS.has(label))).toEqual([])
    }
  })
})

test('the page of metrics names every metric with its labels, and every alert', () => {
  const page = read('docs/monitoring.md')
  for (const [name, { labels }] of Object.entries(METRICS)) {
    const row = new RegExp(`^- \`${name}\`[: ].*$`, 'm').exec(page)?.[0] ?? ''
    expect(row, name).not.toBe('')
    for (const label of labels) expect(row, name).toContain(`\`${label}\``)
  }
  const listed = [...page.matchAll(/`((?:process|nodejs)_\w+)`/g)].map(([, name = '']) => name)
  expect(listed.length).toBeGreaterThan(5)
  expect(listed.filter((name) => !(name in KNOWN))).toEqual([])
  const alerts = [...read('ops/prometheus/dash.rules.yml').matchAll(/- alert: (\w+)/g)].map(
    ([, name = '']) => name,
  )
  for (const alert of alerts) expect(page).toMatch(new RegExp(`^- \`${alert}\`: `, 'm'))
})

describe('alerts on missing runs', () => {
  const DAY_HOURS = 24
  /** Command, days of the week (1 is Monday) and times of a scheduled run. */
  type Line = readonly [command: string | undefined, days: readonly number[], times: readonly string[]]
  const WEEK = [1, 2, 3, 4, 5, 6, 7]

  const ofInit: Line[] = JOBS.map(({ name, days, times }) => [name, days.cron === '0' ? [7] : WEEK, times])
  const ofTimer: Line[] = read('ops/container/schedule')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [days = '', times = '', command] = line.split(/ +/)
      return [command, days === '*' ? WEEK : days.split(',').map(Number), times.split(',')]
    })

  /** Returns the longest time between two runs of a command, in hours. */
  function longestPause(schedule: readonly Line[], command: string): number {
    const starts = schedule
      .filter(([name]) => name === command)
      .flatMap(([, days, times]) =>
        days.flatMap((day) =>
          times.map((time) => {
            const [hours, minutes] = time.split(':').map(Number)
            return day * DAY_HOURS + (hours ?? NaN) + (minutes ?? NaN) / 60
          }),
        ),
      )
      .sort((a, b) => a - b)
    const next = [...starts.slice(1), (starts[0] ?? NaN) + 7 * DAY_HOURS]
    return Math.max(...next.map((start, index) => start - (starts[index] ?? NaN)))
  }

  const limits = alertExpressions().flatMap((expression) => {
    const [, metric = '', factor, unit] =
      /^time\(\) - max\((.*?)\) > (\d+) \* (3600|86400)\s*$/.exec(expression) ?? []
    const command = metric.startsWith('dash_snapshot_') ? 'collect' : /command="(.*?)"/.exec(metric)?.[1]
    return command === undefined ? [] : [{ metric, command, hours: (Number(factor) * Number(unit)) / 3600 }]
  })

  test('an alert exists for each scheduled command and for its results', () => {
    expect(limits.map(({ command }) => command).sort()).toEqual(
      [...new Set(ofInit.map(([command]) => command)), 'collect'].sort(),
    )
  })

  test('dash init and the timer of the image keep the same schedule, which collects every two hours and at 23:50', () => {
    const sorted = (schedule: readonly Line[]) =>
      schedule.map(([command, days, times]) => [command, days, [...times].sort()]).sort()
    expect(sorted(ofInit)).toEqual(sorted(ofTimer))
    expect(longestPause(ofInit, 'collect')).toBeCloseTo(2)
    const collect = JOBS.find(({ name }) => name === 'collect')
    expect(collect?.times).toContain('23:50')
    // A source without its required token would make every run fail.
    const sources = LIVE_SOURCES.filter((source) => REQUIRED_TOKENS[source] === undefined)
    expect(collect?.args).toEqual(['collect', '--quiet', '--source', ...sources])
  })

  test.each([
    ['dash init sets up', ofInit],
    ['the timer of the image keeps', ofTimer],
  ])(
    'alerts allow the schedule that %s an hour for a run, and at most one missed run',
    (_whose, schedule) => {
      for (const { metric, command, hours } of limits) {
        expect(hours, metric).toBeGreaterThan(longestPause(schedule, command) + 1)
        expect(hours, metric).toBeLessThan(2 * longestPause(ofInit, command) + 6)
      }
    },
  )
})
