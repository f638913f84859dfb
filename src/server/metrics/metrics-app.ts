import { H3 } from 'h3'
import { EXPOSITION_TYPE } from '../../domain/metrics/exposition.ts'
import { NO_STORE, respondJson, respondText } from '../respond.ts'

/** The application of the metrics' own listener, without a socket (docs/monitoring.md). */
export function createMetricsApp(scrape: () => Promise<string>): H3 {
  const app = new H3({
    silent: true,
    onError: (error, event) => {
      const status = error.status < 500 ? error.status : 500
      return respondJson(event, status, NO_STORE, { error: status === 404 ? 'not_found' : 'internal_error' })
    },
  })
  app.get('/metrics', async (event) => respondText(event, 200, NO_STORE, EXPOSITION_TYPE, await scrape()))
  return app
}
