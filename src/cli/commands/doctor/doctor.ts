import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isLoopbackUrl } from '../../../domain/agent/budget.ts'
import { proveRun } from '../../../domain/models/stored-run.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { DatabaseLocation } from '../../../domain/refusal.ts'
import type { Survey } from '../../../domain/survey.ts'
import { parseInstant } from '../../../domain/time.ts'
import type { Instant } from '../../../domain/time.ts'
import { Container } from '../../container.ts'
import type { BareContext } from '../../context.ts'
import { EXIT, describeError, exitCodeOf } from '../../exit-codes.ts'
import { isDeadProcess } from '../../process-identity.ts'
import { chatGaps, chatWarnings } from '../../settings/chat-checks.ts'
import { configOf } from '../../settings/config.ts'
import type { Config } from '../../settings/config.ts'
import { examineEnvironment } from '../../settings/environment.ts'
import type { ExaminedSettings } from '../../settings/environment.ts'
import { gatherSettings, gatherWithoutFile } from '../../settings/read-config.ts'
import type { GivenSettings } from '../../settings/read-config.ts'
import { namedVariables } from '../../settings/variables.ts'
import { escaped } from '../../terminal.ts'
import { exitCodeOfFindings, note, ok, problem, warning } from './finding.ts'
import type { Finding, Verdict } from './finding.ts'
import { checkFolders, checkName, checkSecretFiles, checkTextfileDir, checkWritable } from './host.ts'
import { askServices, judgeClock } from './services.ts'
import {
  judgeDatabase,
  judgeFeed,
  judgeLedger,
  judgeRecommendation,
  judgeRows,
  judgeState,
} from './stores.ts'

/**
 * `dash doctor`: looks at everything an installation needs, and says how to mend what does not do. It changes nothing: no
 * folder and no file is made, no migration applied, nothing asked that costs anything.
 *
 * @param offline true: no service is asked
 * @returns 0 without a problem, else the code that a command would end with: 78, 74, 65, 69, 1
 */
export async function doctorCommand(context: BareContext, offline: boolean): Promise<number> {
  const { terminal, env, cwd, signal, version } = context
  const { given, unread } = settingsOf(context)
  const examined = examineEnvironment(given.values, cwd)
  const findings = [
    ...unread,
    ...checkSettings(given, examined),
    ...checkName(env['PATH']),
    ...checkSecretFiles(given, cwd),
  ]
  if (examined.settings !== null) {
    const config = configOf(examined.settings, cwd)
    const container = new Container({ config, version })
    try {
      findings.push(...(await examine(container, offline, signal)))
    } finally {
      await container.close()
    }
  }
  const exitCode = exitCodeOfFindings(findings)
  const counts = countsOf(findings)
  terminal.result({ ok: exitCode === EXIT.done, counts, findings }, printed(findings))
  return exitCode
}

/** What is set; an env file that cannot be read is a finding, and everything else is looked at without it. */
function settingsOf({ flags, env, cwd }: BareContext): { given: GivenSettings; unread: Finding[] } {
  try {
    return { given: gatherSettings(flags, env, cwd), unread: [] }
  } catch (error) {
    if (!(error instanceof Refusal && (error.code === 'configuration' || error.code === 'usage'))) throw error
    const detail = `${describeError(error)}; the rest is looked at without it`
    const mend = 'make it readable for this user, correct --dotenv, or write one with dash init'
    return {
      given: gatherWithoutFile(flags, env),
      unread: [problem('configuration.file', detail, mend, EXIT.configuration)],
    }
  }
}

async function examine(container: Container, offline: boolean, signal: AbortSignal): Promise<Finding[]> {
  const { config } = container
  const stores = await lookAtStores(container)
  const services = offline
    ? { findings: [], skews: [] }
    : await askServices(config, await container.reach(), signal)
  return [
    ...checkFeatures(config),
    ...checkFolders(config),
    ...checkWritable(config),
    ...checkTextfileDir(config),
    ...stores.findings,
    ...services.findings,
    judgeClock([...stores.skews, ...services.skews]),
  ]
}

async function lookAtStores(container: Container): Promise<{ findings: Finding[]; skews: number[] }> {
  const { config } = container
  const skews: number[] = []
  let publications = 0
  const look = <Facts>(
    store: 'ledger' | 'feed' | 'state',
    survey: () => Promise<Survey<Facts>>,
    judge: (facts: Facts, now: Instant) => Finding[],
  ): Promise<Finding[]> =>
    orProblem(store, async () => {
      // That it is not there is told of the folder.
      if (isInMissingFolder(config[store], config)) return []
      const found = await survey()
      const now = Date.now()
      if (found.now !== null) skews.push(found.now - now)
      return [judgeDatabase(store, found), ...(found.facts === null ? [] : judge(found.facts, now))]
    })
  const findings = [
    ...(await look(
      'ledger',
      () => container.surveyLedger(),
      (facts, now) => {
        publications = facts.publications
        return judgeLedger(facts, now, isDeadProcess)
      },
    )),
    ...(await look(
      'feed',
      () => container.surveyFeed(),
      (facts, now) => [judgeFeed(facts, now), judgeRows(facts)],
    )),
    ...(await look(
      'state',
      () => container.surveyState(),
      (facts, now) => judgeState(facts, now, isDeadProcess),
    )),
    ...(await orProblem('objects', () => lookAtObjects(container, publications))),
  ]
  return { findings, skews }
}

function isInMissingFolder({ url }: DatabaseLocation, { dataDir }: Config): boolean {
  return url.startsWith('file:') && dirname(fileURLToPath(url)) === dataDir && !existsSync(dataDir)
}

/** What a store could not be asked for, as one more thing that was found. */
async function orProblem(check: string, look: () => Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await look()
  } catch (error) {
    const exitCode = exitCodeOf(error)
    if (exitCode === EXIT.internal) throw error
    const isRefused = error instanceof Refusal && error.code === 'storage_damaged'
    const mend = isRefused ? 'restore it from a backup (docs/backup.md)' : 'make it reachable for this user'
    return [problem(check, describeError(error), mend, exitCode)]
  }
}

/** @param publications that the ledger tells of */
async function lookAtObjects(container: Container, publications: number): Promise<Finding[]> {
  const { store: location, storeNamed } = container.config
  if (location.kind === 'file' && !storeNamed && publications === 0 && !existsSync(location.path))
    return [
      note(
        'objects',
        `${location.path} is not there yet`,
        'the first command that stores something makes it',
      ),
    ]
  const store = await container.recommendations()
  await store.ping()
  const bytes = await store.current()
  const updatedAt = bytes === null ? null : parseInstant(proveRun(bytes).updatedAt)
  return [ok('objects', 'the object store answers'), judgeRecommendation(updatedAt, Date.now())]
}

/** A line a finding, and under it what to do. */
function printed(findings: readonly Finding[]): string {
  const lines = findings.map(({ check, verdict, detail, mend }) => {
    const word = verdict.padEnd(8)
    return `${word}${check}: ${escaped(detail)}${mend === null ? '' : `\n        -> ${escaped(mend)}`}`
  })
  const counts = countsOf(findings)
  return [
    ...lines,
    `${counts.problem} problems, ${counts.warning} warnings, ${counts.note} notes, ${counts.ok} ok`,
  ].join('\n')
}

function countsOf(findings: readonly Finding[]): Record<Verdict, number> {
  const countOf = (verdict: Verdict): number => findings.filter((each) => each.verdict === verdict).length
  return {
    ok: countOf('ok'),
    note: countOf('note'),
    warning: countOf('warning'),
    problem: countOf('problem'),
  }
}

/** What the configuration is worth by itself. */
export function checkSettings(given: GivenSettings, examined: ExaminedSettings): Finding[] {
  const from = given.dotenv === null ? 'no env file is read' : `the env file ${given.dotenv} is read`
  const wrong = examined.problems.map(({ message }) =>
    problem(
      'configuration',
      message,
      'correct it; dash config tells where each value comes from',
      EXIT.configuration,
    ),
  )
  const unknown = unknownNames(given).map((name) =>
    warning(
      'configuration.names',
      `${name} is set, but no variable has that name`,
      'correct or remove it; dash config lists all names',
    ),
  )
  return wrong.length > 0
    ? [...wrong, ...unknown]
    : [ok('configuration', `every value is sound; ${from}`), ...unknown]
}

/** Names that are meant for the program, and that it does not know. */
function unknownNames({ values }: GivenSettings): string[] {
  const known = new Set(
    namedVariables.flatMap(({ name, secret }) => (secret ? [name as string, `${name}_FILE`] : [name])),
  )
  return Object.keys(values).filter((name) => name.startsWith('DASH_') && !known.has(name))
}

/** What is off, and by which setting. */
export function checkFeatures(config: Config): Finding[] {
  const gaps = chatGaps(config)
  const { provider } = config.chat
  const warnings = gaps.length === 0 ? chatWarnings(config) : []
  const bare = [
    ['OPENAI_BASE_URL', provider.url, provider.key],
    ['OPENROUTER_BASE_URL', config.openRouterUrl, config.openRouterKey],
  ] as const
  return [
    gaps.length === 0
      ? ok('chat', `the chat is on, with the model ${provider.model}`)
      : note('chat', 'the chat is off', chatMend(gaps)),
    ...warnings.map((each) => warning(each.check, each.problem, each.mend)),
    ...bare.flatMap(([name, url, key]) =>
      key !== null && url.startsWith('http:') && !isLoopbackUrl(url)
        ? [
            warning(
              'secrets.transport',
              `${name} is no https: URL: the key is sent where others can read it`,
              `use https in ${name}`,
            ),
          ]
        : [],
    ),
  ]
}

function chatMend(gaps: readonly string[]): string {
  return gaps.includes('DASH_CHAT_DISABLED')
    ? 'to switch it on, remove DASH_CHAT_DISABLED'
    : `to switch it on, set ${gaps.join(', ')}`
}
