import { isClockWrong, medianOf, skewOf } from '../../../domain/clock-check.ts'
import { LIVE_SOURCES } from '../../../domain/feed/live-source.ts'
import type { LiveSourceName } from '../../../domain/feed/live-source.ts'
import { parseJsonObject } from '../../../domain/text.ts'
import { REQUIRED_TOKENS, localUrl } from '../../settings/config.ts'
import type { Config } from '../../settings/config.ts'
import type { HttpProbe } from '../../container.ts'
import { EXIT } from '../../exit-codes.ts'
import { withoutSecrets } from '../../settings/environment.ts'
import { found, note, ok, problem, warning } from './check.ts'
import type { Check, Judgement } from './check.ts'

const TIMEOUT_MS = 10_000

type ProbeOutcome = Awaited<ReturnType<HttpProbe['send']>>

interface ServiceProbe {
  check: string
  url: string
  method: 'GET' | 'HEAD'
  key?: string | null
  judge: (response: ProbeOutcome) => Judgement
}

/**
 * Sends a request that costs nothing to every configured service: for the key's data, a model list, or the head of
 * a source's URL.
 *
 * @returns findings, and the skew of each service's clock in milliseconds, positive if it is ahead of this one
 * @throws the signal's reason, and nothing else
 */
export async function probeServices(
  config: Config,
  probe: HttpProbe,
  signal: AbortSignal,
): Promise<{ findings: Check[]; skews: number[] }> {
  const skews: number[] = []
  const probes = [serverProbe(config), ...modelProbes(config), ...sourceProbes(config)]
  const findings = await Promise.all(
    probes.map(async ({ check, url, method, key = null, judge }) => {
      const sentAt = Date.now()
      const headers = {
        'user-agent': 'dash-doctor (AI and trends dashboard)',
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      }
      const response = await probe.send({ url, method, headers, timeoutMs: TIMEOUT_MS }, signal)
      if (check !== 'server' && 'date' in response && response.date !== null)
        skews.push(skewOf(response.date, sentAt, Date.now()))
      return found(check, judge(response))
    }),
  )
  return { findings: findings.flat(), skews }
}

/** Smaller differences between clocks are ignored. */
const SKEW_MAX_MS = 5_000

/**
 * @param skews skews of services and database servers in milliseconds; the median counts, because one of them may
 *   be wrong
 */
export function judgeClock(skews: readonly number[]): Judgement {
  const middle = medianOf(skews)
  if (middle === null)
    return note(
      'the clock was not compared with any other',
      'run dash doctor without --offline and with network access',
    )
  if (Math.abs(middle) <= SKEW_MAX_MS) return ok(`the clock agrees with ${skews.length} others`)
  const side = middle > 0 ? 'behind' : 'ahead of'
  const detail = `this clock is ${Math.round(Math.abs(middle) / 1000)} s ${side} the others`
  const mend = 'turn on time synchronisation: timedatectl set-ntp true'
  return isClockWrong({ aheadMs: -middle, sources: skews.length })
    ? problem(detail, mend, EXIT.failed)
    : warning(detail, mend)
}

function serverProbe(config: Config): ServiceProbe {
  const url = `${localUrl(config)}/readyz`
  const judge: ServiceProbe['judge'] = (response) => {
    if ('unreachable' in response) return note(`no server responds at ${url}`, 'dash serve starts one')
    const status = READINESS.find((each) => each === parseJsonObject(response.body)?.['status'])
    if (response.status === 200 && status === 'ready') return ok(`${url} is ready`)
    if (status !== undefined)
      return problem(`${url} reports that it is ${status}`, 'check the server log', EXIT.unavailable)
    const detail = `${url} responds with ${response.status} and is not a dash server`
    const mend = 'another program listens on this port; correct HOST and PORT'
    return problem(detail, mend, EXIT.unavailable)
  }
  return { check: 'server', url, method: 'GET', judge }
}

/** States that a server reports at `/readyz`. */
const READINESS = ['ready', 'unavailable', 'draining']

function modelProbes({ openRouterUrl, openRouterKey, chat }: Config): ServiceProbe[] {
  const { model, url, key } = chat.provider
  const isRouterUsed = openRouterKey !== null || model === 'auto'
  const router: ServiceProbe = {
    check: 'router',
    url: `${openRouterUrl}/${openRouterKey === null ? 'models' : 'key'}`,
    method: 'GET',
    key: openRouterKey,
    judge: (response) =>
      judgeModelService(`the routing service at ${openRouterUrl}`, 'OPENROUTER', isRouterUsed, response),
  }
  if (model === null || model === 'auto' || chat.disabled) return [router]
  const judge: ServiceProbe['judge'] = (response) => {
    const judged = judgeModelService(`the chat's provider at ${url}`, 'OPENAI', true, response)
    const listed = judged.verdict === 'ok' && 'body' in response ? modelIds(response.body) : null
    if (listed === null || listed.includes(model)) return judged
    const mend = `correct DASH_CHAT_MODEL; it lists ${listed.slice(0, 5).join(', ') || 'none'}`
    return warning(`${url} does not list the model ${model}`, mend)
  }
  return [router, { check: 'provider', url: `${url}/models`, method: 'GET', key, judge }]
}

/**
 * @param name label in messages, with the address
 * @param prefix of the variables of its key and its address
 * @param isUsed false if only the evaluation of models needs it
 */
function judgeModelService(
  name: string,
  prefix: 'OPENAI' | 'OPENROUTER',
  isUsed: boolean,
  response: ProbeOutcome,
): Judgement {
  const baseUrl = `${prefix}_BASE_URL`
  if ('unreachable' in response) {
    const detail = `${name} does not respond (${response.unreachable})`
    const mend = `check the network and ${baseUrl}`
    return isUsed ? problem(detail, mend, EXIT.unavailable) : warning(detail, mend)
  }
  const { status } = response
  if (status === 401 || status === 403)
    return problem(`${name} rejects the key (${status})`, `correct ${prefix}_API_KEY`, EXIT.configuration)
  if (status >= 500)
    return warning(`${name} responds with ${status}`, 'try again later; the service itself fails')
  return status === 200
    ? ok(`${name} responds`)
    : note(`${name} responds with ${status} and lists no models`, `check that ${baseUrl} is its API base`)
}

/** Returns the IDs of a list of models; null for another body. */
function modelIds(body: string): string[] | null {
  try {
    const { data } = JSON.parse(body) as { data?: unknown }
    if (!Array.isArray(data)) return null
    const ids = data.map((each: { id?: unknown } | null) => each?.id)
    return ids.filter((id) => typeof id === 'string')
  } catch {
    return null
  }
}

/** Variable that holds the address of a source. */
const urlName = (source: LiveSourceName): string => `DASH_${source.replace('hype:', '').toUpperCase()}_URL`

/** Probes of all sources, except those without their required token. */
function sourceProbes({ sourceUrls, sourceTokens: tokens, chat }: Config): ServiceProbe[] {
  const sources = LIVE_SOURCES.filter((source) =>
    (REQUIRED_TOKENS[source] ?? []).every((token) => tokens[token] !== null),
  )
  return [
    ...sources.map((source) => headProbe(`source.${source}`, sourceUrls[source], urlName(source))),
    ...(chat.verification ? [headProbe('verification', chat.verification.url, 'DASH_VERIFICATION_URL')] : []),
  ]
}

/** Sends a HEAD request; any response shows that the service is reachable. */
function headProbe(check: string, url: string, setting: string): ServiceProbe {
  const shown = withoutSecrets(url)
  const judge: ServiceProbe['judge'] = (response) =>
    'unreachable' in response
      ? warning(`${shown} does not respond (${response.unreachable})`, `check the network and ${setting}`)
      : ok(`${shown} responds`)
  return { check, url, method: 'HEAD', judge }
}
