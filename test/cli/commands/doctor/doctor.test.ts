import { describe, expect, test } from 'vitest'
import {
  exitCodeOfFindings,
  findingsOf,
  ok,
  problem,
  warning,
} from '../../../../src/cli/commands/doctor/check.ts'
import { judgeClock, judgeModelService, othersInList } from '../../../../src/cli/commands/doctor/doctor.ts'
import {
  FEED_CHECKS,
  judgeRecommendation,
  LEDGER_CHECKS,
  STATE_CHECKS,
} from '../../../../src/cli/commands/doctor/stores.ts'
import { formatInstant } from '../../../../src/domain/time.ts'
import type { LedgerFacts } from '../../../../src/domain/inspection.ts'

const HOUR = 3_600_000
const NOW = Date.parse('2026-03-02T12:00:00Z')

const LEDGER: LedgerFacts = {
  publications: 3,
  newest: { asOfDay: '2026-03-01', publishedAt: NOW - 12 * HOUR },
  recordedAt: NOW - 12 * HOUR,
  gaps: [],
}

/** Returns `<check> <verdict>` of every finding about a ledger. */
const ledgerVerdicts = (facts: Partial<LedgerFacts>, now = NOW): string[] =>
  findingsOf(LEDGER_CHECKS, { ...LEDGER, ...facts }, now).map(({ check, verdict }) => `${check} ${verdict}`)

describe('publications', () => {
  test('publications are ok if the last complete day is published', () => {
    expect(ledgerVerdicts({})).toEqual(['publications ok', 'gaps ok'])
  })

  test('publications may be a day behind until two hours after midnight', () => {
    const night = Date.parse('2026-03-03T01:59:59Z')
    expect(ledgerVerdicts({}, night)).toContain('publications ok')
    expect(ledgerVerdicts({}, night + 1_000)).toContain('publications warning')
  })

  test('a day that became a gap is reported as a gap', () => {
    const newest = { asOfDay: '2026-02-28', publishedAt: NOW - 36 * HOUR }
    const gaps = [{ asOfDay: '2026-03-01', reason: 'attempts_spent' }]
    expect(ledgerVerdicts({ newest, gaps })).toEqual(['publications ok', 'gaps warning'])
    const two = [{ asOfDay: '2026-02-20', reason: 'missed' }, ...gaps]
    expect(JSON.stringify(findingsOf(LEDGER_CHECKS, { ...LEDGER, gaps: two }, NOW))).toContain(
      '2026-02-20 (missed), 2026-03-01 (attempts_spent)',
    )
    expect(ledgerVerdicts({ gaps: [{ asOfDay: '2026-01-15', reason: 'missed' }] })).toContain('gaps ok')
  })

  test('publications later than the clock are a problem of the clock', () => {
    expect(ledgerVerdicts({ recordedAt: NOW + 1 })).toContain('clock.ledger problem')
  })
})

test.each([
  ['m', '{"data":[{"id":"m"}]}', null],
  ['m', '[{"id":"other"},{"id":"m"}]', null],
  ['llama3.2', '{"data":[{"id":"llama3.2:latest"}]}', null],
  ['llama3.2:3b', '{"data":[{"id":"llama3.2:latest"}]}', ['llama3.2:latest']],
  ['gemini-2.5-flash', '{"data":[{"id":"models/gemini-2.5-flash"}]}', null],
  ['openai/gpt-oss-20b:groq', '{"data":[{"id":"openai/gpt-oss-20b"}]}', null],
  ['m', '<!doctype html>', null],
])('the model %s is looked for in the list %s', (model, list, others) => {
  expect(othersInList(list, model)).toEqual(others)
})

test.each([
  ['OPENAI', 401, 'problem'],
  ['OPENAI', 400, 'problem'],
  // A key may be restricted to completions.
  ['OPENAI', 403, 'warning'],
  ['OPENROUTER', 403, 'problem'],
] as const)('a key of %s that gets %i is a %s', (prefix, status, verdict) => {
  const judged = judgeModelService('a service', prefix, true, {
    status,
    body: 'API key not valid',
    date: null,
  })
  expect(judged.verdict).toBe(verdict)
})

test.each([
  ['{"data":[]}', 'ok'],
  ['\n<!doctype html><title>Chat</title>', 'note'],
])('a service that responds with %s gets %s', (body, verdict) => {
  expect(judgeModelService('a service', 'OPENAI', true, { status: 200, body, date: null }).verdict).toBe(
    verdict,
  )
})

test('a clock that the last collect found wrong is a problem', () => {
  const verdicts = (aheadMs: number, hours: number): string[] => {
    const clockCheck = { checkedAt: NOW - hours * HOUR, aheadMs, sources: 3 }
    const facts = { snapshotAt: NOW, publicationProblem: null, isIndexed: true, clockCheck }
    return findingsOf(FEED_CHECKS, facts, NOW)
      .filter(({ check }) => check === 'clock.collect')
      .map(({ verdict, exitCode }) => `${verdict} ${exitCode}`)
  }
  expect([verdicts(300_001, 1), verdicts(-300_001, 47)]).toEqual([['problem 1'], ['problem 1']])
  expect([verdicts(300_000, 1), verdicts(300_001, 49)]).toEqual([[], []])
})

test('snapshot and recommendation are reported with their age', () => {
  const feedAt = (snapshotAt: number | null): string | undefined =>
    findingsOf(
      FEED_CHECKS,
      { snapshotAt, publicationProblem: null, isIndexed: true, clockCheck: null },
      NOW,
    )[0]?.verdict
  const feed = (hours: number): string | undefined => feedAt(NOW - hours * HOUR)
  expect([feed(-1), feed(6), feed(6.1)]).toEqual(['problem', 'ok', 'warning'])
  expect(feedAt(null)).toBe('note')
  const model = (hours: number): string =>
    judgeRecommendation({ updatedAt: formatInstant(NOW - hours * HOUR) }, NOW, 'auto').verdict
  expect([model(36), model(36.1)]).toEqual(['ok', 'warning'])
  const none = [null, 'auto'].map((chatModel) => judgeRecommendation(null, NOW, chatModel))
  expect(none.map(({ verdict }) => verdict)).toEqual(['note', 'warning'])
})

test.each([
  [null, 'note', 0],
  [{ endedAt: NOW - HOUR, ok: true, damage: 0 }, 'ok', 0],
  [{ endedAt: NOW - 200 * HOUR, ok: true, damage: 0 }, 'warning', 0],
  [{ endedAt: NOW - HOUR, ok: false, damage: 0 }, 'warning', 0],
  [{ endedAt: NOW - HOUR, ok: false, damage: 1 }, 'problem', 65],
])('the last audit %o is a %s', (audit, verdict, exitCode) => {
  const findings = findingsOf(STATE_CHECKS, { audit }, NOW)
  expect(findings.map((each) => each.verdict)).toEqual([verdict])
  expect(exitCodeOfFindings(findings)).toBe(exitCode)
})

test('the clock is compared with the median of all others', () => {
  const verdict = (skews: number[]): string => judgeClock(skews).verdict
  expect(verdict([])).toBe('note')
  expect(verdict([0, 900_000, -10])).toBe('ok')
  expect(verdict([6_000])).toBe('warning')
  expect(verdict([-400_000, -400_000, 0])).toBe('problem')
  expect(judgeClock([60_000]).detail).toContain('60 s behind')
  expect(judgeClock([-60_000]).detail).toContain('60 s ahead')
})

test('the exit code is that of the problem to repair first', () => {
  const p = (code: number) => problem('d', 'm', code)
  expect(exitCodeOfFindings([ok('b'), warning('b', 'c')])).toBe(0)
  expect(exitCodeOfFindings([p(1), p(69), p(74)])).toBe(74)
  expect(exitCodeOfFindings([p(69), p(78), p(65)])).toBe(78)
  expect(exitCodeOfFindings([p(1)])).toBe(1)
})
