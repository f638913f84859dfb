import { databaseUrl, serverUrl, storeUrl, text } from './rules.ts'
import { optional } from './variable.ts'

/** Where everything is kept. */
export const STORE_VARIABLES = {
  DASH_DATA_DIR: optional(text, {
    group: 'stores',
    meaning: 'folder of `ledger.db`, `feed.db`, `state.db` and `objects/`',
    unset: '`./dash-data`',
    flag: '--data-dir',
  }),
  DASH_DATABASE_URL: optional(serverUrl, {
    group: 'stores',
    meaning: 'a libSQL server for every database: `libsql:`, `https:` or `http:` URL',
    unset: 'files in the data folder',
  }),
  DASH_DATABASE_AUTH_TOKEN: optional(text, {
    group: 'stores',
    meaning: 'bearer token of that server',
    secret: true,
  }),
  DASH_DATABASE_READ_TOKEN: optional(text, {
    group: 'stores',
    meaning:
      'token of that server that may only read, for the chat agent; without it the agent uses the other',
    secret: true,
  }),
  DASH_LEDGER_URL: optional(databaseUrl, {
    group: 'stores',
    meaning: 'the ledger alone: `file:` URL or a libSQL server',
    unset: '`DASH_DATABASE_URL`',
  }),
  DASH_FEED_URL: optional(databaseUrl, {
    group: 'stores',
    meaning: 'the feed alone, likewise',
    unset: '`DASH_DATABASE_URL`',
  }),
  DASH_STATE_URL: optional(databaseUrl, {
    group: 'stores',
    meaning: "evaluations of models, the chat's quotas and records of audits, likewise",
    unset: '`DASH_DATABASE_URL`',
  }),
  DASH_STORE_URL: optional(storeUrl, {
    group: 'stores',
    meaning: 'object store: `file:PATH` or `s3://BUCKET/PREFIX?endpoint=URL&region=R`',
    unset: '`objects` in the data folder',
  }),
  AWS_ACCESS_KEY_ID: optional(text, { group: 'stores', meaning: 'key of an S3 store', secret: true }),
  AWS_SECRET_ACCESS_KEY: optional(text, { group: 'stores', meaning: 'its secret', secret: true }),
} as const
