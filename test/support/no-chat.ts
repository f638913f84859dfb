import type { Agent } from '../../src/server/agent/routes.ts'

/** The chat of a server on which none is set up. */
export const NO_CHAT: Pick<Agent, 'routes' | 'config' | 'shownStatus'> = {
  routes: [],
  config: async () => ({
    enabled: false,
    requireVerification: false,
    itemChat: true,
    briefEnabled: false,
    model: '',
    quotas: { messagesPerSession: 0, messagesPerDay: 0 },
  }),
  shownStatus: async () => ({ ok: true, service: 'agent-worker', budget: 'ok', itemChat: true }),
}
