import { openJobPings } from '../adapters/job-pings.ts'
import type { JobWatch } from '../domain/ports.ts'

/** The service that watches jobs. Loaded only where one is named. */
export function openJobWatch(url: string): JobWatch {
  return openJobPings({ url })
}
