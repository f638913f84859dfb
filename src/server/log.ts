/** Structured log lines: codes, ids, counts and durations; never message text, tokens or addresses. */
export interface Log {
  info(fields: Record<string, unknown>, message: string): void
  warn(fields: Record<string, unknown>, message: string): void
  error(fields: Record<string, unknown>, message: string): void
}

/** The message of the one line that each turn of the chat has. */
export const TURN_MESSAGE = 'chat turn'
