import type { H3, H3Event } from 'h3'
import { coalesce } from './coalesce.ts'
import type { Log } from './log.ts'
import { NO_STORE, respondJson } from './respond.ts'
import { withinTime } from './within-time.ts'

/** What readiness asks of each store: resolve when it can be used. */
export type ReadinessChecks = Readonly<Record<string, () => Promise<void>>>

/** Two in a row are over before whoever asks gives up: `dash healthcheck`, a balancer and a scrape wait five seconds. */
const CHECK_MS = 2_000

/** The same checks, each of which fails when its store has not answered in time: a store may accept and stay silent. */
export function boundedChecks(checks: ReadinessChecks, limitMs = CHECK_MS): ReadinessChecks {
  const { signal } = new AbortController()
  return Object.fromEntries(
    Object.entries(checks).map(([name, check]) => [name, () => withinTime(check(), limitMs, signal)]),
  )
}

/**
 * Mounts `/healthz`, which does no I/O, and `/readyz`, which is 503 until every store is reachable with its
 * migrations applied, and while the server drains (docs/operations.md).
 */
export function mountHealth(app: H3, checks: ReadinessChecks, isDraining: () => boolean, log: Log): void {
  app.get('/healthz', (event) => respondJson(event, 200, NO_STORE, { status: 'ok' }))
  const look = coalesce(() => runChecks(checks, log))
  app.get('/readyz', async (event) => answer(event, await look(), isDraining()))
}

type CheckResults = [name: string, result: 'ok' | 'unavailable'][]

async function runChecks(checks: ReadinessChecks, log: Log): Promise<CheckResults> {
  return Promise.all(
    Object.entries(checks).map(async ([name, check]): Promise<CheckResults[number]> => {
      try {
        await check()
        return [name, 'ok']
      } catch (error) {
        log.warn({ check: name, err: error }, 'not ready')
        return [name, 'unavailable']
      }
    }),
  )
}

function answer(event: H3Event, results: CheckResults, draining: boolean): Response {
  const ready = results.every(([, result]) => result === 'ok')
  const status = draining ? 'draining' : ready ? 'ready' : 'unavailable'
  const body = { status, checks: Object.fromEntries(results) }
  return respondJson(event, status === 'ready' ? 200 : 503, NO_STORE, body)
}
