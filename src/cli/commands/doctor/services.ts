import { LIVE_SOURCES } from '../../../domain/feed/live-source.ts'
import type { LiveSourceName } from '../../../domain/feed/live-source.ts'
import type { HttpProbe, ProbeResult } from '../../../domain/ports.ts'
import type { Instant } from '../../../domain/time.ts'
import { localUrl } from '../../settings/config.ts'
import type { Config } from '../../settings/config.ts'
import { EXIT } from '../../exit-codes.ts'
import { withoutSecrets } from '../../settings/environment.ts'
import { readinessOf } from '../healthcheck.ts'
import { found, note, ok, problem, warning } from './check.ts'
import type { Check, Judgement } from './check.ts'

const TIMEOUT_MS = 10_000

interface ServiceProbe {
  check: string
  url: string
  method: 'GET' | 'HEAD'
  key?: string | null
  judge: (response: ProbeResult | { unreachable: string }) => Judgement
}

/**
 * Asks every configured service whether it responds. Nothing that is asked costs anything: the account's key, lists of
 * models, and the beginnings of the sources' addresses.
 *
 * @returns what was found, and how many milliseconds each clock, which tells whole seconds, was ahead of this one
 * @throws only the signal's own reason
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
      const askedAt = Date.now()
      const headers = {
        'user-agent': 'dash-doctor (AI and trends dashboard)',
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      }
      const response = await probe.send({ url, method, headers, timeoutMs: TIMEOUT_MS }, signal)
      if (check !== 'server' && 'date' in response && response.date !== null)
        skews.push(skewOf(response.date, askedAt, Date.now()))
      return found(check, judge(response))
    }),
  )
  return { findings: findings.flat(), skews }
}

/** How far a clock is ahead that said `date`, cut to the second, between two instants of this one. */
export function skewOf(date: Instant, askedAt: Instant, answeredAt: Instant): number {
  if (date + 1_000 < askedAt) return date + 1_000 - askedAt
  return Math.max(0, date - answeredAt)
}

/** Clocks that differ by less are as good as the same. */
const SKEW_MAX_MS = 5_000

/** From here on `at` of the history and sessions of the chat are refused. */
const SKEW_WRONG_MS = 300_000

/** @param skews of services and database servers; the middle one counts, since one of them may be wrong itself */
export function judgeClock(skews: readonly number[]): Judgement {
  const middle = [...skews].sort((a, b) => a - b)[Math.floor(skews.length / 2)]
  if (middle === undefined)
    return note('no other clock was asked', 'run it without --offline, where a service can be reached')
  if (Math.abs(middle) <= SKEW_MAX_MS) return ok(`agrees with ${skews.length} other clocks`)
  const side = middle > 0 ? 'behind' : 'ahead of'
  const detail = `this clock is ${Math.round(Math.abs(middle) / 1000)} s ${side} the others`
  const mend = 'let the system keep it: timedatectl set-ntp true'
  return Math.abs(middle) > SKEW_WRONG_MS ? problem(detail, mend, EXIT.failed) : warning(detail, mend)
}

function serverProbe(config: Config): ServiceProbe {
  const url = `${localUrl(config)}/readyz`
  const judge: ServiceProbe['judge'] = (response) => {
    if ('unreachable' in response) return note(`no server answers at ${url}`, 'dash serve starts one')
    const { ready, status, message: words } = readinessOf(response)
    if (ready) return ok(`${url} ${words}`)
    const foreign = 'another program listens there; correct HOST and PORT'
    const mend = status === null ? foreign : 'look at the log of the server'
    return problem(`${url} ${words}`, mend, EXIT.unavailable)
  }
  return { check: 'server', url, method: 'GET', judge }
}

function modelProbes({ openRouterUrl, openRouterKey, chat }: Config): ServiceProbe[] {
  const { model, url, key } = chat.provider
  const router: ModelService = {
    name: `the routing service at ${openRouterUrl}`,
    keyName: 'OPENROUTER_API_KEY',
    urlName: 'OPENROUTER_BASE_URL',
    isUsed: openRouterKey !== null || model === 'auto',
  }
  const provider: ModelService = {
    name: `the chat's provider at ${url}`,
    keyName: 'OPENAI_API_KEY',
    urlName: 'OPENAI_BASE_URL',
    isUsed: true,
  }
  const routerVisit: ServiceProbe = {
    check: 'router',
    url: `${openRouterUrl}/${openRouterKey === null ? 'models' : 'key'}`,
    method: 'GET',
    key: openRouterKey,
    judge: (response) => judgeModelService(router, response),
  }
  if (model === null || model === 'auto' || chat.disabled) return [routerVisit]
  const judge: ServiceProbe['judge'] = (response) => {
    const judged = judgeModelService(provider, response)
    const listed = judged.verdict === 'ok' && 'body' in response ? modelIds(response.body) : null
    if (listed === null || listed.includes(model)) return judged
    const mend = `correct DASH_CHAT_MODEL; it lists ${listed.slice(0, 5).join(', ') || 'none'}`
    return warning(`${url} lists no model ${model}`, mend)
  }
  return [routerVisit, { check: 'provider', url: `${url}/models`, method: 'GET', key, judge }]
}

interface ModelService {
  /** As a person would call it, with its address. */
  name: string
  /** Variables that hold its key and its address. */
  keyName: string
  urlName: string
  /** False when only the renewal of a recommendation needs it. */
  isUsed: boolean
}

function judgeModelService(
  { name, keyName, urlName, isUsed }: ModelService,
  response: ProbeResult | { unreachable: string },
): Judgement {
  if ('unreachable' in response) {
    const detail = `${name} does not answer (${response.unreachable})`
    const mend = `check the network and ${urlName}`
    return isUsed ? problem(detail, mend, EXIT.unavailable) : warning(detail, mend)
  }
  const { status } = response
  if (status === 401 || status === 403)
    return problem(`${name} does not take the key (${status})`, `correct ${keyName}`, EXIT.configuration)
  if (status >= 500) return warning(`${name} answers ${status}`, 'try again later; it is in trouble itself')
  return status === 200
    ? ok(`${name} answers`)
    : note(`${name} answers ${status}, and lists no models`, `see that ${urlName} is its API base`)
}

/** null when it is no list of models. */
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

/** The variable that holds the address of a source. */
const urlName = (source: LiveSourceName): string => `DASH_${source.replace('hype:', '').toUpperCase()}_URL`

/** Visits to every source that is read, which is not one that lacks its token. */
function sourceProbes({ sourceUrls, sourceTokens: tokens, chat }: Config): ServiceProbe[] {
  const skipped: Partial<Record<LiveSourceName, boolean>> = {
    'hype:replicate': tokens.replicate === null,
    'hype:reddit': tokens.redditClientId === null || tokens.redditClientSecret === null,
  }
  const sources = LIVE_SOURCES.filter((source) => !skipped[source])
  return [
    ...sources.map((source) => headProbe(`source.${source}`, sourceUrls[source], urlName(source))),
    ...(chat.verification ? [headProbe('verification', chat.verification.url, 'DASH_VERIFICATION_URL')] : []),
  ]
}

/** Any response to such a request shows that the service is there. */
function headProbe(check: string, url: string, setting: string): ServiceProbe {
  const shown = withoutSecrets(url)
  const judge: ServiceProbe['judge'] = (response) =>
    'unreachable' in response
      ? warning(`${shown} does not answer (${response.unreachable})`, `check the network and ${setting}`)
      : ok(`${shown} answers`)
  return { check, url, method: 'HEAD', judge }
}
