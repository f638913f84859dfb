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

/** What the configuration tells: whether a turn could run now, and on which model. */
export async function readiness(ports: AgentPorts): Promise<{ enabled: boolean; model: string }> {
  const { settings, signer, provider, log } = ports
  const model = await ports.modelName().catch((error: unknown) => {
    log.warn({ err: error }, 'which model the chat runs on cannot be read')
    return ''
  })
  return { enabled: !settings.disabled && signer !== null && provider !== null && model !== '', model }
}
