import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, lstatSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isCancel, password, select, text as textInput } from '@clack/prompts'
import { Refusal, errorCode, messageOf } from '../../../domain/refusal.ts'
import type { BareContext } from '../../context.ts'
import { createFolder, fileOf } from '../../data-folder.ts'
import { EXIT } from '../../exit-codes.ts'
import { currentUser, ownerName } from '../../process-identity.ts'
import { configFrom } from '../../settings/config.ts'
import type { Config } from '../../settings/config.ts'
import { parseEnvironment } from '../../settings/environment.ts'
import { SETTING_FLAGS } from '../../settings/flags.ts'
import type { ConfigFlags } from '../../settings/flags.ts'
import { dotenvPath, envFile } from '../../settings/dotenv.ts'
import { flagSettings, noteUnknownSettings, readConfig } from '../../settings/read-config.ts'
import { VARIABLES } from '../../settings/variables.ts'
import type { VariableName } from '../../settings/variables.ts'
import type { Variable } from '../../settings/rules.ts'
import { fail, shellWord } from '../../terminal.ts'
import { containerCommands, crontab, systemdUnits } from './units.ts'
import type { Installation, Unit } from './units.ts'

type ChosenSettings = Record<string, string>

/** Form in which `dash init` prints how to run an installation. */
type OutputKind = 'systemd' | 'cron' | 'containers' | 'nothing'

/** Output stream of prompts, and the signal that cancels them. */
interface PromptContext {
  output: NodeJS.WriteStream
  signal: AbortSignal
}

/** Thrown when the user cancels a prompt. */
class Cancelled extends Error {}

interface InitFlags extends ConfigFlags {
  user?: string
  yes: boolean
  /** False for `--no-env`. */
  env: boolean
  writeUnits?: string
  /** Absent: prompted for on a terminal; else units and crontab are printed. */
  print?: OutputKind
}

/** Bytes of a new session secret: twice the required length. */
const SECRET_BYTES = 64

/** `dash init`. No existing file is overwritten, and an invalid value is refused before anything is written. */
export async function initCommand(context: BareContext, flags: InitFlags): Promise<number> {
  const { terminal, cwd, env, signal } = context
  noteUnknownSettings(env, terminal)
  const dotenv = dotenvPath(flags.dotenv, cwd)
  const choices = await choose(context, flags, dotenv).catch((error: unknown) => {
    if (error instanceof Cancelled) return null
    throw error
  })
  if (choices === null) {
    signal.throwIfAborted()
    return fail(terminal, 'cancelled; nothing was written', EXIT.interrupted)
  }
  const { chosen, kinds } = choices
  if (!chosen && flags.dotenv === undefined && !existsSync(dotenv))
    throw new Refusal(
      'usage',
      `${dotenv} does not exist; run dash init without --no-env, or name an env file with --dotenv`,
    )
  const config = chosen
    ? configFrom(chosen, cwd, flagSettings(flags).originOf)
    : readConfig({ ...flags, dotenv }, env, cwd)
  const installation = installationOf(config, { dotenv, folder: cwd, user: userOf(flags.user) })
  const units = kinds.includes('systemd') || flags.writeUnits !== undefined ? systemdUnits(installation) : []
  const unitFiles = unitFilesOf(units, flags.writeUnits, cwd)
  for (const { path } of unitFiles) requireAbsent(path)
  const envText = chosen && envFile(chosen)
  const created = chosen ? createDataFolder(config) : false
  if (envText !== null) writeNew(dotenv, envText, 0o600)
  for (const { path, text } of unitFiles) writeNew(path, text, 0o644)
  const result = {
    job: 'init',
    dotenv,
    written: chosen !== null,
    dataDir: config.dataDir,
    created,
    user: installation.user,
    units,
    crontab: kinds.includes('cron') ? crontab(installation, isUtc()) : '',
    unitFiles: unitFiles.map(({ path }) => path),
    ...(kinds.includes('containers') ? { containers: containerCommands(installation, config.baseUrl) } : {}),
  }
  terminal.result(result, printedText(kinds, result))
  noteNextSteps(context, installation, { ...result, kinds })
  return EXIT.done
}

/**
 * Collects settings and forms of output from flags, and from prompts on a terminal. Without settings no env file is
 * written.
 *
 * @throws Cancelled
 */
async function choose(context: BareContext, flags: InitFlags, dotenv: string) {
  const { terminal, stdin, stderr, cwd, signal } = context
  const isInteractive = stdin.isTTY && terminal.interactive && !terminal.json && !flags.yes
  const prompts: PromptContext | null = isInteractive ? { output: stderr, signal } : null
  const known = flags.env ? knownSettings(context, flags, dotenv) : null
  const dataDir = resolve(cwd, 'dash-data')
  const settings = known && prompts ? await promptForSettings(known, dataDir, prompts) : known
  const kinds = await kindsPrinted(flags, prompts)
  const chosen = settings && {
    ...settings,
    DASH_DATA_DIR: resolve(cwd, settings['DASH_DATA_DIR'] ?? dataDir),
    DASH_SESSION_SECRET: randomBytes(SECRET_BYTES).toString('base64url'),
  }
  return { chosen, kinds }
}

/**
 * Returns the settings from flags, and from environment variables that a flag overrides: every command would use
 * them.
 */
function knownSettings({ cwd, env }: BareContext, flags: InitFlags, dotenv: string): ChosenSettings {
  requireAbsent(dotenv, 'move it away, choose another with --dotenv, or keep it with --no-env')
  if (!existsSync(dirname(dotenv)))
    throw new Refusal('usage', `--dotenv: the folder ${dirname(dotenv)} does not exist; create it`)
  const { values, originOf } = flagSettings(flags)
  const inherited = Object.keys(SETTING_FLAGS).map((name) => [name, env[name]] as const)
  const set = inherited.filter((entry): entry is [string, string] => Boolean(entry[1]))
  const known = { ...Object.fromEntries(set), ...values }
  parseEnvironment(known, cwd, originOf)
  return known
}

async function kindsPrinted({ print }: InitFlags, prompts: PromptContext | null): Promise<OutputKind[]> {
  if (print !== undefined) return [print]
  // Without a prompt it is unknown which of the two this host uses.
  return prompts === null ? ['systemd', 'cron'] : [await promptForOutputs(prompts)]
}

/**
 * Prompts for settings that no flag gave. Every prompt has a default, and every value is checked by the rule of its
 * variable.
 *
 * @param known settings from flags, for which there is no prompt
 * @throws Cancelled
 */
async function promptForSettings(
  known: ChosenSettings,
  dataDir: string,
  prompts: PromptContext,
): Promise<ChosenSettings> {
  const choices = { ...known }
  await promptFor('DASH_DATA_DIR', choices, prompts, dataDir)
  await promptFor('HOST', choices, prompts)
  await promptFor('PORT', choices, prompts)
  await promptFor('DASH_BASE_URL', choices, prompts)
  // Without a public address there is no proxy in front.
  if (choices['DASH_BASE_URL'] !== undefined) await promptFor('DASH_TRUSTED_PROXIES', choices, prompts)
  if (choices['DASH_CHAT_MODEL'] === undefined) await promptForChat(choices, prompts)
  await promptFor('OPENROUTER_API_KEY', choices, prompts)
  return choices
}

/** @throws Cancelled */
async function promptForOutputs(prompts: PromptContext): Promise<OutputKind> {
  const answer = await select<OutputKind>({
    message: 'How will you run dash?',
    options: [
      { value: 'systemd', label: 'systemd units' },
      { value: 'cron', label: 'cron lines' },
      { value: 'containers', label: 'containers (Docker Compose)' },
      { value: 'nothing', label: 'print nothing' },
    ],
    ...prompts,
  })
  return answered(answer)
}

/** Returns the answer to a prompt. @throws Cancelled */
function answered<T>(answer: T): Exclude<T, symbol> {
  if (isCancel(answer)) throw new Cancelled()
  return answer as Exclude<T, symbol>
}

async function promptForChat(choices: ChosenSettings, prompts: PromptContext): Promise<void> {
  const answer = await select({
    message: 'Which model should the chat use?',
    options: [
      { value: 'none', label: 'none, no chat for now' },
      { value: 'auto', label: 'the recommended free model', hint: 'needs an OpenRouter key' },
      { value: 'own', label: 'a model of your own provider' },
    ],
    ...prompts,
  })
  const kind = answered(answer)
  if (kind === 'auto') choices['DASH_CHAT_MODEL'] = 'auto'
  if (kind !== 'own') return
  await promptFor('OPENAI_BASE_URL', choices, prompts)
  await promptFor('DASH_CHAT_MODEL', choices, prompts)
  await promptFor('OPENAI_API_KEY', choices, prompts)
  // A guessed price could exceed the budget: the chat stays off without a price.
  await promptFor('DASH_CHAT_PRICE_INPUT', choices, prompts)
  if (choices['DASH_CHAT_PRICE_INPUT'] !== undefined)
    await promptFor('DASH_CHAT_PRICE_OUTPUT', choices, prompts)
}

/** Prompts for a variable; the value of a secret is not shown. */
async function promptFor(
  name: VariableName,
  choices: ChosenSettings,
  prompts: PromptContext,
  suggested?: string,
): Promise<void> {
  if (choices[name] !== undefined) return
  const { rule, secret, question: message = name, suggestion, standard }: Variable = VARIABLES[name]
  const initialValue = suggestion ?? suggested ?? standard ?? ''
  const validate = (value: string | undefined): string | undefined =>
    value ? rule.safeParse(value).error?.issues[0]?.message : undefined
  const answer = secret
    ? password({ message, mask: '*', validate, ...prompts })
    : textInput({ message, initialValue, validate, ...prompts })
  const value = answered(await answer)
  if (value) choices[name] = value
}

function installationOf(
  { dataDir, dataDirUsed, stateInDataDir, store, drainMs, ledger, feed, state, log }: Config,
  paths: Pick<Installation, 'dotenv' | 'folder' | 'user'>,
): Installation {
  const folders = new Set([
    ...(dataDirUsed || stateInDataDir ? [dataDir] : []),
    ...[ledger, feed, state].flatMap((location) => fileOf(location) ?? []).map((path) => dirname(path)),
    ...(store.kind === 'file' ? [store.path] : []),
  ])
  const isInside = (folder: string): boolean => [...folders].some((other) => folder.startsWith(`${other}/`))
  const keyFolder = log.keyFile && dirname(log.keyFile)
  return {
    node: process.execPath,
    program: fileURLToPath(new URL('../../main.js', import.meta.url)),
    root: fileURLToPath(new URL('../../../..', import.meta.url)).replace(/\/$/, ''),
    written: [...folders].filter((folder) => !isInside(folder)).map(onOneLine),
    recordFolder: keyFolder && !folders.has(keyFolder) && !isInside(keyFolder) ? onOneLine(keyFolder) : null,
    drainSeconds: drainMs / 1000,
    user: paths.user,
    folder: onOneLine(paths.folder),
    dotenv: onOneLine(paths.dotenv),
  }
}

/**
 * Returns a path that units and crontabs can hold.
 *
 * @throws Refusal `usage` for a path with control characters
 */
function onOneLine(path: string): string {
  // oxlint-disable-next-line no-control-regex -- control characters are what is looked for
  if (!/[\u0000-\u001f\u007f]/.test(path)) return path
  throw new Refusal('usage', `the path ${JSON.stringify(path)} contains control characters; choose another`)
}

function userOf(named: string | undefined): string {
  const { uid, name } = currentUser()
  const user = named ?? (uid === 0 ? 'dash' : name)
  if (/^(?:[A-Za-z_][\w.-]{0,31}|\d{1,10})$/.test(user)) return user
  throw new Refusal('usage', `--user ${JSON.stringify(user)} must be the name or the number of a user`)
}

function unitFilesOf(
  units: readonly Unit[],
  named: string | undefined,
  cwd: string,
): { path: string; text: string }[] {
  if (named === undefined) return []
  const folder = resolve(cwd, named)
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory())
    return units.map(({ name, text }) => ({ path: join(folder, name), text }))
  throw new Refusal('usage', `--write-units ${folder} is not a folder; create it or choose another`)
}

/** Creates the data folder, even a named one, because this command sets up an installation. @returns true if it was missing */
function createDataFolder(config: Config): boolean {
  const { dataDir, dataDirUsed, stateInDataDir } = config
  if (!dataDirUsed && !stateInDataDir) return false
  const isMissing = !existsSync(dataDir)
  createFolder(dataDir, config, 'DASH_DATA_DIR')
  return isMissing
}

function isUtc(): boolean {
  return /^(?:Etc\/)?(?:UTC|UCT|Universal|Zulu)$/.test(new Intl.DateTimeFormat().resolvedOptions().timeZone)
}

interface Runners {
  units: readonly Unit[]
  /** Paths of the written units; empty if the units are printed. */
  unitFiles: readonly string[]
  crontab: string
  containers?: string
}

function printedText(
  kinds: readonly OutputKind[],
  { units, unitFiles, crontab: crontabLines, containers = '' }: Runners,
): string {
  if (!kinds.includes('systemd')) return `${crontabLines}${containers}`.trimEnd()
  const files =
    unitFiles.length > 0
      ? [`# written:\n${unitFiles.map((path) => `#   ${path}`).join('\n')}\n`]
      : units.map(({ name, text }) => `# --- /etc/systemd/system/${name}\n${text}`)
  const instead =
    crontabLines === '' ? [] : [`# --- instead of the timers: ${crontabLines.replace(/^# /, '')}`]
  return [...files, ...instead].join('\n').trimEnd()
}

function noteNextSteps(
  { terminal }: BareContext,
  { node, program, dotenv, user, written: folders, recordFolder }: Installation,
  { written, created, kinds }: { written: boolean; created: boolean; kinds: readonly OutputKind[] },
): void {
  const { uid, name: ownName } = currentUser()
  const commandLine = (name: string): string =>
    [node, program, name, '--dotenv', dotenv].map(shellWord).join(' ')
  const steps = [
    written && `created ${dotenv} with a fresh secret; only its owner can read it`,
    ...folders.map((folder) => created && `created ${folder}`),
  ]
  // Containers have their own user and volume.
  if (!kinds.includes('containers'))
    steps.push(
      ...folders.map(
        (folder) =>
          user !== ownName &&
          `make ${folder} belong to the user of the services: chown -R ${ownerName(user)} ${shellWord(folder)}`,
      ),
      recordFolder !== null &&
        `the user ${user} must be able to write in ${recordFolder} (DASH_LOG_KEY_FILE)`,
      user === 'dash' &&
        uid === 0 &&
        'create the user if it is missing: useradd --system --user-group --no-create-home --shell /usr/sbin/nologin dash',
    )
  if (kinds.includes('cron') && !kinds.includes('systemd'))
    steps.push(`cron starts only the jobs; start the server with ${commandLine('serve')}`)
  for (const step of [...steps, `check everything with ${commandLine('doctor')}`])
    if (step !== false) terminal.note(step)
}

/**
 * Refuses to overwrite a file.
 *
 * @param advice remedy for the message
 * @throws Refusal `configuration`
 */
function requireAbsent(path: string, advice = 'move it away, or choose another folder'): void {
  // A dangling link counts as existing.
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return
  throw new Refusal('configuration', `${path} already exists and is not overwritten; ${advice}`)
}

/**
 * Creates a file durably; a partly written file is removed.
 *
 * @throws Refusal `configuration`
 */
function writeNew(path: string, text: string, mode: number): void {
  try {
    writeFileSync(path, text, { flag: 'wx', mode, flush: true })
    // Other users must be able to read a unit, whatever the umask is.
    chmodSync(path, mode)
  } catch (error) {
    if (errorCode(error) === 'EEXIST') requireAbsent(path)
    rmSync(path, { force: true })
    throw new Refusal('configuration', `${path} cannot be written (${messageOf(error)})`)
  }
}
