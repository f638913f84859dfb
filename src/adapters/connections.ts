import type { Agent, Dispatcher, request as send } from 'undici'

/** Connections to servers, of whoever opened them; `close` ends them. */
export interface Connections {
  /** Sends a request over a connection of the pool; everything else is undici's own `request`. */
  request(
    url: string | URL,
    options: Omit<Dispatcher.RequestOptions, 'origin' | 'path'>,
  ): Promise<Dispatcher.ResponseData>
  close(): Promise<void>
}

/**
 * A pool of connections that is made at its first request: the client takes longer to load than a small archive to
 * audit, and a command on files never asks a server for anything.
 */
export function openConnections(options: Agent.Options): Connections {
  let opening: Promise<{ request: typeof send; agent: Agent }> | null = null
  return {
    async request(url, asked) {
      opening ??= import('undici').then(({ Agent, request }) => ({ request, agent: new Agent(options) }))
      const { request, agent } = await opening
      return request(url, { ...asked, dispatcher: agent })
    },
    async close() {
      if (opening) await (await opening).agent.destroy()
    },
  }
}
