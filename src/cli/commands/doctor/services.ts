import type { Reach, Reached } from '../../../domain/ports.ts'
import type { Instant } from '../../../domain/time.ts'
import { localUrl } from '../../settings/config.ts'
import type { Config } from '../../settings/config.ts'
import { EXIT } from '../../exit-codes.ts'
import { withoutSecrets } from '../../settings/environment.ts'
import { readinessOf } from '../healthcheck.ts'
import { note, ok, problem, warning } from './finding.ts'
import type { Finding } from './finding.ts'

/** Longest wait for one service. */
const TIMEOUT_MS = 10_000

/** What the services answered, and what their clocks said. */
export interface Services {
  findings: Finding[]
  /** How far each clock was ahead of this one, in milliseconds; whole seconds are told. */
  skews: number[]
}

interface Visit {
  check: string
  url: string
  method: 'GET' | 'HEAD'
  headers?: Record<string, string>
  judge: (answer: Reached | { unreachable: string }) => Finding
}

/**
 * Asks every configured service whether it answers. Nothing that is asked costs anything: the account's key, lists of
 * models, and the beginnings of the sources' addresses.
 *
 * @throws only the signal's own reason
 */
export async function askServices(config: Config, reach: Reach, signal: AbortSignal): Promise<Services> {
  const skews: number[] = []
  const findings = await Promise.all(
    [serverVisit(config), ...modelVisits(config), ...sourceVisits(config)].map(async (visit) => {
      const { url, method, headers = {}, judge } = visit
      const askedAt = Date.now()
      const agent = { 'user-agent': 'dash-doctor (AI and trends dashboard)', ...headers }
      const answer = await reach.ask({ url, method, headers: agent, timeoutMs: TIMEOUT_MS }, signal)
      if (visit.check !== 'server' && 'date' in answer && answer.date !== null)
        skews.push(skewOf(answer.date, askedAt, Date.now()))
      return judge(answer)
    }),
  )
  return { findings, skews }
}

/** How far a clock is ahead that said `date`, cut to the second, between two instants of this one. */
export function skewOf(date: Instant, askedAt: Instant, answeredAt: Instant): number {
  if (date + 1_000 < askedAt) return date + 1_000 - askedAt
  return Math.max(0, date - answeredAt)
}

/** Clocks that say less than this are as good as the same. */
const SKEW_MAX_MS = 5_000

/** From here on `at` of the history and sessions of the chat are refused. */
const SKEW_WRONG_MS = 300_000

/** @param skews of services and database servers; the middle one counts, since one of them may be wrong itself */
export function judgeClock(skews: readonly number[]): Finding {
  const check = 'clock'
  const middle = [...skews].sort((a, b) => a - b)[Math.floor(skews.length / 2)]
  if (middle === undefined)
    return note(check, 'no other clock was asked', 'run it without --offline, where a service can be reached')
  if (Math.abs(middle) <= SKEW_MAX_MS) return ok(check, `agrees with ${skews.length} other clocks`)
  const detail = `this clock is ${Math.round(Math.abs(middle) / 1000)} s ${middle > 0 ? 'behind' : 'ahead of'} the others`
  const mend = 'let the system keep it: timedatectl set-ntp true'
  return Math.abs(middle) > SKEW_WRONG_MS
    ? problem(check, detail, mend, EXIT.failed)
    : warning(check, detail, mend)
}

function serverVisit(config: Config): Visit {
  const check = 'server'
  const url = `${localUrl(config)}/readyz`
  const judge: Visit['judge'] = (answer) => {
    if ('unreachable' in answer) return note(check, `no server answers at ${url}`, 'dash serve starts one')
    const { ready, status, words } = readinessOf(answer)
    if (ready) return ok(check, `${url} ${words}`)
    const mend =
      status === null
        ? 'another program listens there; correct HOST and PORT'
        : 'look at the log of the server'
    return problem(check, `${url} ${words}`, mend, EXIT.unavailable)
  }
  return { check, url, method: 'GET', judge }
}

const bearer = (key: string | null): Record<string, string> =>
  key === null ? {} : { authorization: `Bearer ${key}` }

function modelVisits({ openRouterUrl, openRouterKey, chat }: Config): Visit[] {
  const { model, url, key } = chat.provider
  const router: Visit = {
    check: 'router',
    url: openRouterKey === null ? `${openRouterUrl}/models` : `${openRouterUrl}/key`,
    method: 'GET',
    headers: bearer(openRouterKey),
    judge: judgeService({
      check: 'router',
      what: 'the routing service',
      base: openRouterUrl,
      keyName: 'OPENROUTER_API_KEY',
      urlName: 'OPENROUTER_BASE_URL',
      isUsed: openRouterKey !== null || model === 'auto',
    }),
  }
  if (model === null || model === 'auto' || chat.disabled) return [router]
  const judge = judgeService({
    check: 'provider',
    what: "the chat's provider",
    base: url,
    keyName: 'OPENAI_API_KEY',
    urlName: 'OPENAI_BASE_URL',
    isUsed: true,
  })
  const provider: Visit = {
    check: 'provider',
    url: `${url}/models`,
    method: 'GET',
    headers: bearer(key),
    judge(answer) {
      const found = judge(answer)
      if (found.verdict !== 'ok' || 'unreachable' in answer) return found
      const listed = modelIds(answer.body)
      if (listed === null || listed.includes(model)) return found
      return warning(
        'provider',
        `${url} lists no model ${model}`,
        `correct DASH_CHAT_MODEL; it lists ${listed.slice(0, 5).join(', ') || 'none'}`,
      )
    },
  }
  return [router, provider]
}

interface Service {
  check: string
  /** As a person would call it. */
  what: string
  base: string
  /** Variables that hold its key and its address. */
  keyName: string
  urlName: string
  /** False when everything works without it but for a recommendation that is renewed. */
  isUsed: boolean
}

function judgeService({ check, what, base, keyName, urlName, isUsed }: Service): Visit['judge'] {
  return (answer) => {
    if ('unreachable' in answer) {
      const detail = `${what} at ${base} does not answer (${answer.unreachable})`
      const mend = `check the network and ${urlName}`
      return isUsed ? problem(check, detail, mend, EXIT.unavailable) : warning(check, detail, mend)
    }
    const { status } = answer
    if (status === 401 || status === 403) {
      const detail = `${what} at ${base} does not take the key (${status})`
      return problem(check, detail, `correct ${keyName}`, EXIT.configuration)
    }
    if (status >= 500) {
      const detail = `${what} at ${base} answers ${status}`
      return warning(check, detail, 'try again later; it is in trouble itself')
    }
    return status === 200
      ? ok(check, `${what} at ${base} answers`)
      : note(
          check,
          `${what} at ${base} answers ${status}, and lists no models`,
          `see that ${urlName} is its API base`,
        )
  }
}

/** null when it is no list of models. */
function modelIds(body: string): string[] | null {
  try {
    const { data } = JSON.parse(body) as { data?: unknown }
    if (!Array.isArray(data)) return null
    return data.flatMap((each: unknown) =>
      typeof each === 'object' && each !== null && 'id' in each && typeof each.id === 'string'
        ? [each.id]
        : [],
    )
  } catch {
    return null
  }
}

function sourceVisits(config: Config): Visit[] {
  const { sourceTokens: tokens } = config
  const sources = [
    ['hn', config.hackerNewsUrl, 'DASH_HN_URL'],
    ['lobsters', config.lobstersUrl, 'DASH_LOBSTERS_URL'],
    ['lesswrong', config.lessWrongUrl, 'DASH_LESSWRONG_URL'],
    ['hype:github', config.gitHubUrl, 'DASH_GITHUB_URL'],
    ['hype:huggingface', config.huggingFaceUrl, 'DASH_HUGGINGFACE_URL'],
    ...(tokens.replicate === null
      ? []
      : [['hype:replicate', config.replicateUrl, 'DASH_REPLICATE_URL'] as const]),
    ...(tokens.redditClientId === null || tokens.redditClientSecret === null
      ? []
      : [['hype:reddit', config.redditUrl, 'DASH_REDDIT_URL'] as const]),
    ...(config.chat.verification === null
      ? []
      : [['verification', config.chat.verification.url, 'DASH_VERIFICATION_URL'] as const]),
  ] as const
  return sources.map(([name, url, setting]): Visit => {
    const check = name === 'verification' ? name : `source.${name}`
    const shown = withoutSecrets(url)
    // Whatever it answers to such a request: it is there.
    const judge: Visit['judge'] = (answer) =>
      'unreachable' in answer
        ? warning(
            check,
            `${shown} does not answer (${answer.unreachable})`,
            `check the network and ${setting}`,
          )
        : ok(check, `${shown} answers`)
    return { check, url, method: 'HEAD', judge }
  })
}
