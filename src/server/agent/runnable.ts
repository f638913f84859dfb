import type { AgentRefusal } from '../../domain/agent/refusals.ts'
import type { SessionSigner } from '../../domain/agent/token.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { AgentPorts } from './service.ts'

/** What a turn cannot do without. */
export interface Runnable {
  signer: SessionSigner
  provider: NonNullable<AgentPorts['provider']>
}

/**
 * The first two checks of every session and turn.
 *
 * @throws Refusal `disabled` while the kill switch is set, `misconfigured` while no turn could run
 */
export async function runnable(ports: AgentPorts): Promise<Runnable> {
  if (ports.settings.disabled) throw new Refusal<AgentRefusal>('disabled')
  const { signer, provider } = ports
  if (!signer || !provider || (await provider.model.name()) === '') {
    throw new Refusal<AgentRefusal>('misconfigured')
  }
  return { signer, provider }
}

/** True when a turn could run now: `enabled` of the configuration. */
export async function isEnabled(ports: AgentPorts): Promise<boolean> {
  const { settings, signer, provider } = ports
  return !settings.disabled && signer !== null && provider !== null && (await provider.model.name()) !== ''
}
