import type { FailureCode, Usage } from '../../domain/agent/model-call.ts'

/** How a turn ended; `gone` is a reader that left or was cut off. */
export type Ending =
  | { kind: 'done'; usage: Usage; cached?: true; degraded?: true }
  | ({ kind: 'error' } & FailureCode)
  | { kind: 'gone' }
