import { single } from '../../domain/metrics/catalogue.ts'
import type { MetricFamily } from '../../domain/metrics/exposition.ts'
import { counter, histogram } from './instruments.ts'

/** Seconds: from a file in memory to an answer of the chat. */
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 90]

const METHODS = new Set(['GET', 'HEAD', 'POST', 'OPTIONS'])

/** An answer's own end of the connection; only its identity matters. */
type Answer = object

/** Counts requests and what they took. */
export interface RequestMeter {
  /** A request has arrived. */
  begun(): void
  /** The template of the route that answers; null: none does. */
  routed(answer: Answer, template: string | null): void
  /** The template of the route that gave a response, `none` where no route did. */
  routeOf(answer: Answer): string
  /** The answer has ended, or its reader has left before there was one. */
  ended(
    answer: Answer,
    request: { method: string | undefined; status: number; answered: boolean; durationMs: number },
  ): void
  families(): MetricFamily[]
}

export function requestMeter(): RequestMeter {
  const requests = counter('dash_http_requests_total')
  const durations = histogram('dash_http_request_duration_seconds', BOUNDS)
  const templates = new WeakMap<Answer, string>()
  const routeOf = (answer: Answer): string => templates.get(answer) ?? 'none'
  let open = 0
  return {
    begun() {
      open += 1
    },
    routed(answer, template) {
      templates.set(answer, template ?? 'none')
    },
    routeOf,
    ended(answer, { method = '', status, answered, durationMs }) {
      open -= 1
      const route = routeOf(answer)
      const of = answered ? `${Math.floor(status / 100)}xx` : 'left'
      const asked = { route, method: METHODS.has(method) ? method : 'other' }
      // Told from the first answer on: of errors that appear with the first one Prometheus sees no increase.
      requests.add({ ...asked, status: '5xx' }, 0)
      requests.add({ ...asked, status: of })
      durations.observe({ route, status: of }, durationMs / 1000)
    },
    families: () => [requests.family(), durations.family(), single('dash_http_requests_open', open)],
  }
}
