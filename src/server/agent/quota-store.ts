import type { AgentRefusal } from '../../domain/agent/refusals.ts'
import { Refusal } from '../../domain/refusal.ts'

/**
 * What the quota store answers.
 *
 * @throws Refusal `quota_unavailable` for whatever goes wrong in it: nobody is served who could not be counted
 */
export async function fromQuotaStore<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked
  } catch (cause) {
    throw new Refusal<AgentRefusal>('quota_unavailable', 'the state database does not answer', { cause })
  }
}
