import { isHttpUrl } from '../../domain/address.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { CommandContext } from '../context.ts'
import { EXIT } from '../exit-codes.ts'
import { localUrl } from '../settings/config.ts'
import type { Config } from '../settings/config.ts'
import { withoutSecrets } from '../settings/environment.ts'
import { escaped } from '../terminal.ts'

/** A server that is ready answers at once; whoever asks again every half minute waits no longer. */
const TIMEOUT_MS = 5_000

/**
 * `dash healthcheck`: whether a server is ready, for containers and balancers that have no `curl`.
 *
 * @param url base of the server; without it, the one these settings are of, on this machine
 * @returns 0 ready; 69 not ready, not reachable, or no server of ours
 * @throws Refusal `usage`
 */
export async function healthcheckCommand(context: CommandContext, url: string | undefined): Promise<number> {
  const { terminal, signal, config, container } = context
  const asked = `${baseOf(url, config)}/readyz`
  const shown = withoutSecrets(asked)
  const probe = await container.probe()
  const response = await probe.send({ url: asked, method: 'GET', timeoutMs: TIMEOUT_MS }, signal)
  const { ready, status, message } =
    'unreachable' in response
      ? { ready: false, status: null, message: `does not answer (${response.unreachable})` }
      : readinessOf(response)
  const result = { job: 'healthcheck', ready, url: shown, status }
  if (ready) {
    terminal.result(result, escaped(`${shown} ${message}`))
    return EXIT.done
  }
  terminal.error(`${shown} ${message}; look at the log of the server, or name another with --url`)
  if (terminal.json) terminal.result(result, '')
  return EXIT.unavailable
}

function baseOf(url: string | undefined, config: Config): string {
  if (url === undefined) {
    if (config.port !== 0) return localUrl(config)
    throw new Refusal('usage', 'PORT=0 does not tell where the server listens; name it with --url')
  }
  if (isHttpUrl(url) && !/[?#]/.test(url)) return url.replace(/\/+$/, '')
  throw new Refusal(
    'usage',
    `--url ${withoutSecrets(JSON.stringify(url))} must be an absolute http(s) URL without query or fragment`,
  )
}

/** What `/readyz` told of a server. */
export interface Readiness {
  ready: boolean
  /** null for whatever else answered. */
  status: 'ready' | 'unavailable' | 'draining' | null
  /** As a person would say it, after the address. */
  message: string
}

/** The judgement of an answer of `/readyz`; only a server of ours that says so is ready. */
export function readinessOf({ status: code, body }: { status: number; body: string }): Readiness {
  const status = statusIn(body)
  if (code === 200 && status === 'ready') return { ready: true, status, message: 'is ready' }
  const message = status === null ? `answers ${code}, as no server of dash does` : `says that it is ${status}`
  return { ready: false, status, message }
}

function statusIn(body: string): Readiness['status'] {
  try {
    const parsed: unknown = JSON.parse(body)
    if (typeof parsed !== 'object' || parsed === null || !('status' in parsed)) return null
    return (['ready', 'unavailable', 'draining'] as const).find((status) => status === parsed.status) ?? null
  } catch {
    return null
  }
}
