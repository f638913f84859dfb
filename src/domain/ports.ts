export type * from './agent/ports.ts'
export type { ChatApi, ServedConfig, ServedEvent } from './agent/chat-api.ts'
export type * from './feed/ports.ts'
export type * from './feed/title-source.ts'
export type * from './input.ts'
export type { JobLog, JobWatch } from './job-run.ts'
export type * from './lease.ts'
export type * from './models/ports.ts'
export type * from './reach.ts'
export type { Clock } from './time.ts'
export type * from './year/ports.ts'

/**
 * Everything the product asks of the outside. A port states its promise; every adapter and every in-memory twin is
 * held to it by one contract suite.
 *
 * All of them refuse with `storage_unavailable` when the store is not there or cannot be opened or reached, and
 * with `storage_damaged` when what it holds cannot be what was written. Anything else they throw is a fault.
 */
