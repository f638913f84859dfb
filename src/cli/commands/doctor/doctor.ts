import { isLoopbackUrl } from '../../../domain/agent/budget.ts'
import { Refusal } from '../../../domain/refusal.ts'
import { Container } from '../../container.ts'
import type { BareContext } from '../../context.ts'
import { EXIT, describeError } from '../../exit-codes.ts'
import { chatSetup, chatWarnings } from '../../settings/chat-checks.ts'
import { configOf } from '../../settings/config.ts'
import type { Config } from '../../settings/config.ts'
import { examineEnvironment } from '../../settings/environment.ts'
import type { ExaminedSettings } from '../../settings/environment.ts'
import { gatherSettings } from '../../settings/read-config.ts'
import type { GivenSettings } from '../../settings/read-config.ts'
import { unknownNames } from '../../settings/variables.ts'
import { counted, escaped } from '../../terminal.ts'
import { exitCodeOfFindings, found, note, ok, problem, warning } from './check.ts'
import type { Check, Judgement, Verdict } from './check.ts'
import { checkFolders, checkName, checkSecretFiles, checkWritable } from './host.ts'
import { probeServices, judgeClock } from './services.ts'
import { inspectStores } from './stores.ts'

/**
 * `dash doctor`: checks everything an installation needs, and prints remedies. It changes nothing: it creates no
 * folder or file, applies no migration, and sends no request that costs anything; with
 * `--offline`, none at all.
 *
 * @returns 0 without a problem, else the exit code of the first one to repair: 78, 74, 65, 69 or 1
 */
export async function doctorCommand(
  context: BareContext,
  { offline }: { offline: boolean },
): Promise<number> {
  const { terminal, env, cwd, signal, version } = context
  const { given, unread } = settingsOf(context)
  const examined = examineEnvironment(given.values, cwd)
  const settings = checkSettings(given, examined)
  const findings = [...unread, ...settings, ...checkName(env['PATH']), ...checkSecretFiles(given, cwd)]
  if (examined.settings !== null) {
    const container = new Container({ config: configOf(examined.settings, cwd), version })
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
  const mend = gaps.includes('DASH_CHAT_DISABLED')
    ? 'to turn it on, remove DASH_CHAT_DISABLED'
    : `to turn it on, set ${gaps.join(', ')}`
  const services = [
    { name: 'OPENAI_BASE_URL', url: provider.url, key: provider.key },
    { name: 'OPENROUTER_BASE_URL', url: config.openRouterUrl, key: config.openRouterKey },
  ].filter(({ url, key }) => key !== null && url.startsWith('http:') && !isLoopbackUrl(url))
  const plain = services.map(({ name }) =>
    warning(`${name} is not an https: URL: the key is sent unencrypted`, `use https in ${name}`),
  )
  const isOn = ok(`the chat is on with the model ${provider.model}`)
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
