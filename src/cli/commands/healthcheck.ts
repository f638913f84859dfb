import { isHttpUrl } from '../../domain/address.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { CommandContext } from '../context.ts'
import { EXIT } from '../exit-codes.ts'
import { localUrl } from '../settings/config.ts'
import type { Config } from '../settings/config.ts'
import { withoutSecrets } from '../settings/environment.ts'
import { escaped } from '../terminal.ts'

/** A ready server responds at once, and callers repeat the check about every 30 seconds. */
const TIMEOUT_MS = 5_000

/**
 * `dash healthcheck`: checks whether a server is ready, for containers and load balancers without `curl`. By default the server of these
 * settings, on this machine.
 *
 * @returns 0 if ready; 69 if not ready, not reachable, or not a dash server
 * @throws Refusal `usage`
 */
export async function healthcheckCommand(
  context: CommandContext,
  { url }: { url?: string },
): Promise<number> {
  const { terminal, signal, config, container } = context
  const readinessUrl = `${baseOf(url, config)}/readyz`
  const shown = withoutSecrets(readinessUrl)
  const probe = await container.probe()
  const response = await probe.send({ url: readinessUrl, method: 'GET', timeoutMs: TIMEOUT_MS }, signal)
  const { ready, status, message } =
    'unreachable' in response
      ? { ready: false, status: null, message: `does not respond (${response.unreachable})` }
      : readinessOf(response)
  const result = { job: 'healthcheck', ready, url: shown, status }
  if (ready) {
    terminal.result(result, escaped(`${shown} ${message}`))
    return EXIT.done
  }
  terminal.error(`${shown} ${message}; check the server log, or choose another server with --url`)
  if (terminal.json) terminal.result(result, '')
  return EXIT.unavailable
}

function baseOf(url: string | undefined, config: Config): string {
  if (url === undefined) {
    if (config.port !== 0) return localUrl(config)
    throw new Refusal('usage', 'PORT=0 gives no address to check; set one with --url')
  }
  if (isHttpUrl(url) && !/[?#]/.test(url)) return url.replace(/\/+$/, '')
  const shown = withoutSecrets(JSON.stringify(url))
  throw new Refusal('usage', `--url ${shown} must be an absolute http(s) URL without query or fragment`)
}

/** Result of a request to `/readyz`. */
export interface Readiness {
  ready: boolean
  /** null if another program responded. */
  status: 'ready' | 'unavailable' | 'draining' | null
  /** Text that follows the address in messages. */
  message: string
}

/** Interprets a response from `/readyz`: only a dash server that reports `ready` is ready. */
export function readinessOf({ status: code, body }: { status: number; body: string }): Readiness {
  const status = statusIn(body)
  if (code === 200 && status === 'ready') return { ready: true, status, message: 'is ready' }
  const message =
    status === null ? `responds with ${code} and is not a dash server` : `reports that it is ${status}`
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
