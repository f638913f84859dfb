import type { H3, H3Event } from 'h3'
import type { Log } from './log.ts'
import { NO_STORE, respondJson } from './respond.ts'

/** What readiness asks of each store: resolve when it can be used. */
export type ReadinessChecks = Readonly<Record<string, () => Promise<void>>>

/**
 * Mounts `/healthz`, which does no I/O, and `/readyz`, which is 503 until every store is reachable with its
 * migrations applied, and while the server drains (docs/operations.md).
 */
export function mountHealth(app: H3, checks: ReadinessChecks, isDraining: () => boolean, log: Log): void {
  app.get('/healthz', (event) => respondJson(event, 200, NO_STORE, { status: 'ok' }))
  app.get('/readyz', (event) => readiness(event, checks, isDraining, log))
}

async function readiness(
  event: H3Event,
  checks: ReadinessChecks,
  isDraining: () => boolean,
  log: Log,
): Promise<Response> {
  const results = await Promise.all(
    Object.entries(checks).map(async ([name, check]): Promise<[string, 'ok' | 'unavailable']> => {
      try {
        await check()
        return [name, 'ok']
      } catch (error) {
        log.warn({ check: name, err: error }, 'not ready')
        return [name, 'unavailable']
      }
    }),
  )
  const ready = results.every(([, result]) => result === 'ok')
  const status = isDraining() ? 'draining' : ready ? 'ready' : 'unavailable'
  return respondJson(event, status === 'ready' ? 200 : 503, NO_STORE, {
    status,
    checks: Object.fromEntries(results),
  })
}
