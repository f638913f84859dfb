import { openReach as reach } from '../adapters/reach.ts'
import type { Reach } from '../domain/ports.ts'

/** Asks addresses whether they answer. Apart from wire.ts, so that a health check loads nothing else. */
export function openReach(): Reach & { close: () => Promise<void> } {
  return reach()
}
