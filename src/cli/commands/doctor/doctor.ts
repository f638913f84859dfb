import { isLoopbackUrl } from '../../../domain/agent/budget.ts'
import { Refusal } from '../../../domain/refusal.ts'
import { isClockWrong, medianOf, skewOf } from '../../../domain/clock-check.ts'
import { LIVE_SOURCES } from '../../../domain/feed/live-source.ts'
import type { LiveSourceName } from '../../../domain/feed/live-source.ts'
import { asJsonObject, parseJson, parseJsonObject } from '../../../domain/json.ts'
import { Container } from '../../container.ts'
import type { BareContext } from '../../context.ts'
import { EXIT, describeError } from '../../exit-codes.ts'
import { chatSetup, chatWarnings } from '../../settings/chat-checks.ts'
import { configOf, REQUIRED_TOKENS, localUrl } from '../../settings/config.ts'
import type { Config } from '../../settings/config.ts'
import { examineEnvironment, withoutSecrets } from '../../settings/environment.ts'
import type { ExaminedSettings } from '../../settings/environment.ts'
import { gatherSettings } from '../../settings/read-config.ts'
import type { GivenSettings } from '../../settings/read-config.ts'
import { unknownNames } from '../../settings/variables.ts'
import { counted, escaped } from '../../terminal.ts'
import type { HttpProbe } from '../../container.ts'
import { exitCodeOfFindings, found, note, ok, problem, warning } from './check.ts'
import type { Check, Judgement, Verdict } from './check.ts'
import { checkFolders, checkName, checkSecretFiles, checkWritable } from './host.ts'
import { inspectStores } from './stores.ts'

/** `dash doctor`. It creates no folder or file, applies no migration, and sends no request that costs anything. */
export async function doctorCommand(
  context: BareContext,
  { offline }: { offline: boolean },
): Promise<number> {
  const { terminal, env, cwd, signal, version } = context
  const { given, unread } = settingsOf(context)
  const examined = examineEnvironment(given.values, cwd, given.originOf)
  const settings = checkSettings(given, examined)
  const findings = [...unread, ...settings, ...checkName(env['PATH']), ...checkSecretFiles(given, cwd)]
  if (examined.settings !== null) {
    const container = new Container({ config: configOf(examined.settings, cwd, given.originOf), version })
    try {
      findings.push(...(await checkInstallation(container, offline, signal)))
    } finally {
      await container.close()
    }
  }
  const exitCode = exitCodeOfFindings(findings)
  const counts = countsOf(findings)
  terminal.result({ ok: exitCode === EXIT.done, counts, findings }, printed(findings, counts))
  return exitCode
}

/** Reads the settings. An unreadable env file becomes a finding, and everything else is checked without it. */
function settingsOf(context: BareContext): { given: GivenSettings; unread: Check[] } {
  try {
    return { given: gatherSettings(context), unread: [] }
  } catch (error) {
    if (!(error instanceof Refusal && (error.code === 'configuration' || error.code === 'usage'))) throw error
    const detail = `${describeError(error)}; the other checks run without it`
    const mend = 'make it readable for this user, correct --dotenv, or create one with dash init'
    return {
      given: gatherSettings(context, null),
      unread: found('configuration.file', problem(detail, mend, EXIT.configuration)),
    }
  }
}

function checkSettings({ values, dotenv }: GivenSettings, { problems }: ExaminedSettings): Check[] {
  const from = dotenv === null ? 'no env file is used' : `the env file is ${dotenv}`
  const mend = 'correct it; dash config shows the origin of each value'
  const wrong = problems.map(({ message }) => problem(message, mend, EXIT.configuration))
  const unknown = unknownNames(values).map((name) =>
    warning(
      `${name} is set, but dash has no such variable`,
      'correct or remove it; dash config lists all names',
    ),
  )
  return [
    ...found('configuration', wrong.length > 0 ? wrong : ok(`every value is valid; ${from}`)),
    ...found('configuration.names', unknown),
  ]
}

async function checkInstallation(
  container: Container,
  offline: boolean,
  signal: AbortSignal,
): Promise<Check[]> {
  const { config } = container
  const stores = await inspectStores(container)
  const services = offline
    ? { findings: [], skews: [] }
    : await probeServices(config, await container.probe(), signal)
  return [
    ...checkFeatures(config),
    ...checkFolders(config),
    ...checkWritable(config),
    ...stores.findings,
    ...services.findings,
    ...found('clock', judgeClock([...stores.skews, ...services.skews])),
  ]
}

/** Reports which features are off, and the settings that switch them off. */
export function checkFeatures(config: Config): Check[] {
  const { gaps } = chatSetup(config)
  const { provider } = config.chat
  const warnings = gaps.length === 0 ? chatWarnings(config) : []
  const engine = gaps.includes('OPENAI_API_KEY') ? ', or OPENAI_BASE_URL to an engine on this machine' : ''
  const mend = gaps.includes('DASH_CHAT_DISABLED')
    ? 'to turn it on, remove DASH_CHAT_DISABLED'
    : `to turn it on, set ${gaps.join(', ')}${engine}`
  const services = [
    { name: 'OPENAI_BASE_URL', url: provider.url, key: provider.key },
    { name: 'OPENROUTER_BASE_URL', url: config.openRouterUrl, key: config.openRouterKey },
  ].filter(({ url, key }) => key !== null && url.startsWith('http:') && !isLoopbackUrl(url))
  const plain = services.map(({ name }) =>
    warning(`${name} is not an https: URL: the key is sent unencrypted`, `use https in ${name}`),
  )
  const isOn = ok(`the chat is set up with the model ${provider.model}`)
  return [
    ...found('chat', gaps.length === 0 ? isOn : note('the chat is off', mend)),
    ...found('chat.v1', config.v1 ? judgeV1(gaps) : []),
    ...warnings.flatMap((each) => found(each.check, warning(each.problem, each.mend))),
    ...found('secrets.transport', plain),
  ]
}

function judgeV1(gaps: readonly string[]): Judgement {
  if (gaps.length === 0) return ok('/v1 is on; callers need a key of dash chat-key new')
  return warning(
    '/v1 is on, but its model dash needs the chat, which is off',
    'turn the chat on, or remove DASH_V1',
  )
}

function printed(findings: readonly Check[], counts: Record<Verdict, number>): string {
  const lines = findings.map(({ check, verdict, detail, mend }) => {
    const remedy = mend === null ? '' : `\n        -> ${escaped(mend)}`
    return `${verdict.padEnd(8)}${check}: ${escaped(detail)}${remedy}`
  })
  return [
    ...lines,
    `${counted(counts.problem, 'problem')}, ${counted(counts.warning, 'warning')}, ${counted(counts.note, 'note')}, ${counts.ok} ok`,
  ].join('\n')
}

function countsOf(findings: readonly Check[]): Record<Verdict, number> {
  const counts = { ok: 0, note: 0, warning: 0, problem: 0 }
  for (const { verdict } of findings) counts[verdict] += 1
  return counts
}

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
async function probeServices(
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
    const others = judged.verdict === 'ok' && 'body' in response ? othersInList(response.body, model) : null
    if (others === null) return judged
    const mend = `correct DASH_CHAT_MODEL; it lists ${others.slice(0, 5).join(', ') || 'none'}`
    return warning(`${url} does not list the model ${model}`, mend)
  }
  return [router, { check: 'provider', url: `${url}/models`, method: 'GET', key, judge }]
}

/**
 * @param name label in messages, with the address
 * @param prefix of the variables of its key and its address
 * @param isUsed false if only the evaluation of models needs it
 */
export function judgeModelService(
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
  const { status, body } = response
  if (status === 403 && prefix === 'OPENAI')
    return warning(
      `${name} lists no models to the key (403)`,
      'let the key read models, or ignore this if the chat responds; otherwise correct OPENAI_API_KEY',
    )
  // Gemini answers to a wrong key with 400.
  if (status === 401 || status === 403 || (status === 400 && /\bapi[ _]key\b/i.test(body)))
    return problem(`${name} rejects the key (${status})`, `correct ${prefix}_API_KEY`, EXIT.configuration)
  if (status >= 500)
    return warning(`${name} responds with ${status}`, 'try again later; the service itself fails')
  // A web interface sends its page for every path.
  return status === 200 && !body.trimStart().startsWith('<')
    ? ok(`${name} responds`)
    : note(`${name} responds with ${status} and lists no models`, `check that ${baseUrl} is its API base`)
}

/**
 * Returns the IDs in a list of models if the list does not contain the model; null if it does, or if the body is not a
 * list. Some services list a model with a tag (Ollama), with the prefix `models/` (Gemini) or without its provider
 * (Hugging Face), and some send an array instead of an object.
 */
export function othersInList(body: string, model: string): string[] | null {
  const parsed = parseJson(body)
  const data = asJsonObject(parsed)?.['data'] ?? parsed
  if (!Array.isArray(data)) return null
  const ids = data.map((each) => asJsonObject(each)?.['id']).filter((id) => typeof id === 'string')
  const names = [model, `${model}:latest`, `models/${model}`, model.replace(/:[^:]*$/, '')]
  return names.some((name) => ids.includes(name)) ? null : ids
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
