import { listenAddressSetting, pingUrlSetting } from './monitoring-settings.ts'
import { text } from './rules.ts'
import { optional } from './variable.ts'

/** Who is told how the server and the jobs do. */
export const MONITORING_VARIABLES = {
  DASH_METRICS_ADDRESS: optional(listenAddressSetting, {
    group: 'monitoring',
    meaning: '`HOST:PORT` of the listener on which `serve` answers `/metrics`; without it nothing listens',
    page: 'docs/monitoring.md#metrics',
  }),
  DASH_METRICS_TEXTFILE_DIR: optional(text, {
    group: 'monitoring',
    meaning:
      'folder in which each job leaves its metrics in a file, for the textfile collector of a node exporter',
    page: 'docs/monitoring.md#textfile',
  }),
  DASH_HEALTHCHECK_PING_URL: optional(pingUrlSetting, {
    group: 'monitoring',
    meaning:
      'address of a check of the kind of healthchecks.io, told of the start and the end of each job; `{job}` in it stands for the name of the job',
    page: 'docs/monitoring.md#pings',
    secret: true,
  }),
} as const
