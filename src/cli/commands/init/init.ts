import { randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fchmodSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Refusal } from '../../../domain/refusal.ts'
import type { BareContext } from '../../context.ts'
import { EXIT } from '../../exit-codes.ts'
import type { Config } from '../../settings/config.ts'
import {
  badValue,
  configurationError,
  currentUser,
  ownerWord,
  parseEnvironment,
} from '../../settings/environment.ts'
import type { SettingOrigin } from '../../settings/environment.ts'
import {
  FLAGGED_SETTINGS,
  configFrom,
  dotenvPath,
  flagsOf,
  readConfig,
  settingsOf,
} from '../../settings/read-config.ts'
import { containerCommands, printedText } from './printed.ts'
import type { Asking, Choices, Printed } from './questions.ts'
import { crontab, envFile, systemdUnits } from './units.ts'
import type { Installation, Unit } from './units.ts'

export interface InitFlags {
  dataDir?: string
  dotenv?: string
  host?: string
  port?: string
  baseUrl?: string
  chatModel?: string
  user?: string
  yes: boolean
  /** False for `--no-env`. */
  env: boolean
  writeUnits?: string
  /** Absent: a person is asked; without one the units and the crontab are printed. */
  print?: Printed
}

/** Bytes of a fresh session secret: twice what is asked for. */
const SECRET_BYTES = 64

/**
 * `dash init`: a commented env file with a fresh secret, and what runs everything on this machine. Nothing that is there
 * is overwritten; what a value is worth is told before anything is written.
 *
 * @returns 0, or 130 when the person gave up
 * @throws Refusal `usage`, `configuration`
 */
export async function initCommand(context: BareContext, flags: InitFlags): Promise<number> {
  const { terminal, cwd, env, signal } = context
  const dotenv = dotenvPath(flags.dotenv, cwd)
  const asking = askingOf(context, flags)
  const chosen = flags.env ? await choose(context, flags, dotenv, asking) : null
  const gaveUp = flags.env && chosen === null
  const kinds = gaveUp ? null : await kindsPrinted(flags, asking)
  if (kinds === null) {
    signal.throwIfAborted()
    terminal.error('nothing was written')
    terminal.failure('nothing was written', EXIT.interrupted)
    return EXIT.interrupted
  }
  const config = chosen
    ? configFrom(chosen, cwd, originsOf(flags))
    : readConfig({ ...flags, dotenv }, env, cwd)
  const installation = installationOf(config, { dotenv, folder: cwd, user: userOf(flags.user) })
  const units = kinds.includes('systemd') || flags.writeUnits !== undefined ? systemdUnits(installation) : []
  const unitFiles = unitFilesOf(units, flags.writeUnits, cwd)
  for (const { path } of unitFiles) requireAbsent(path)
  const envText = chosen && envFile(chosen)
  const created = chosen ? createDataFolder(config) : false
  if (envText !== null) writeNew(dotenv, envText, 0o600)
  for (const { path, text } of unitFiles) writeNew(path, text, 0o644)
  const runners = {
    units,
    crontab: kinds.includes('cron') ? crontab(installation, isUtc()) : '',
    containers: kinds.includes('containers') ? containerCommands(installation, config.baseUrl) : '',
    unitFiles: unitFiles.map(({ path }) => path),
  }
  const { containers, ...others } = runners
  const result = {
    job: 'init',
    dotenv,
    written: chosen !== null,
    dataDir: config.dataDir,
    created,
    user: installation.user,
    ...others,
    ...(containers === '' ? {} : { containers }),
  }
  const text = printedText(kinds, runners)
  if (text !== '' || terminal.json) terminal.result(result, text)
  tellWhatIsLeft(context, installation, { written: chosen !== null, created, kinds })
  return EXIT.done
}

/** @returns null when nothing is to be asked */
function askingOf({ terminal, stdin, stderr, signal }: BareContext, { yes }: InitFlags): Asking | null {
  const asks = stdin.isTTY && terminal.interactive && !terminal.json && !yes
  return asks ? { output: stderr, signal } : null
}

/** @returns null when the person gave up */
async function kindsPrinted({ print }: InitFlags, asking: Asking | null): Promise<Printed[] | null> {
  if (print !== undefined) return [print]
  // Which of the two a host knows is not known here.
  if (asking === null) return ['systemd', 'cron']
  const answer = await (await import('./questions.ts')).askPrinted(asking)
  return answer && [answer]
}

/** @returns values by the names of variables; null when the person gave up */
async function choose(
  { cwd, env }: BareContext,
  flags: InitFlags,
  dotenv: string,
  asking: Asking | null,
): Promise<Choices | null> {
  requireAbsent(dotenv, 'move it away, name another with --dotenv, or leave it as it is with --no-env')
  if (!existsSync(dirname(dotenv)))
    throw new Refusal('usage', `--dotenv: the folder ${dirname(dotenv)} does not exist; create it`)
  const known = { ...fromEnvironment(env), ...settingsOf(flags) }
  // What is wrong with a setting is told before anything is asked.
  parseEnvironment(known, cwd, originsOf(flags))
  const defaultDataDir = resolve(cwd, 'dash-data')
  const answers =
    asking === null
      ? known
      : await (await import('./questions.ts')).askSettings(known, defaultDataDir, asking)
  if (answers === null) return null
  return {
    ...answers,
    DASH_DATA_DIR: resolve(cwd, answers['DASH_DATA_DIR'] ?? defaultDataDir),
    DASH_SESSION_SECRET: randomBytes(SECRET_BYTES).toString('base64url'),
  }
}

/** Settings that flags may name too, as the environment has them: every command runs on those. */
function fromEnvironment(env: NodeJS.ProcessEnv): Choices {
  const given = FLAGGED_SETTINGS.map((name) => [name, env[name]] as const)
  return Object.fromEntries(given.filter((entry): entry is [string, string] => Boolean(entry[1])))
}

function originsOf(flags: InitFlags): (name: string) => SettingOrigin {
  const named = flagsOf(flags)
  return (name) => ({ flag: named.get(name) ?? null, file: null })
}

function installationOf(
  { dataDir, dataDirUsed, stateInDataDir, store, drainMs, ledger, feed, state, monitoring }: Config,
  place: Pick<Installation, 'dotenv' | 'folder' | 'user'>,
): Installation {
  const files = [ledger, feed, state].flatMap(({ url }) =>
    url.startsWith('file:') ? [fileURLToPath(url)] : [],
  )
  const folders = [
    ...(dataDirUsed || stateInDataDir ? [dataDir] : []),
    ...files.map((path) => dirname(path)),
    ...(store.kind === 'file' ? [store.path] : []),
  ]
  const written = folders.filter(
    (folder, index) =>
      folders.indexOf(folder) === index && !folders.some((other) => folder.startsWith(`${other}/`)),
  )
  return {
    node: process.execPath,
    program: fileURLToPath(new URL('../../main.js', import.meta.url)),
    root: fileURLToPath(new URL('../../../..', import.meta.url)).replace(/\/$/, ''),
    written: written.map(onOneLine),
    textfileDir: monitoring.textfileDir === null ? null : onOneLine(monitoring.textfileDir),
    drainSeconds: drainMs / 1000,
    user: place.user,
    folder: onOneLine(place.folder),
    dotenv: onOneLine(place.dotenv),
  }
}

/** @throws Refusal `usage` for a path that no unit and no crontab can hold */
function onOneLine(path: string): string {
  // oxlint-disable-next-line no-control-regex -- control characters are what is looked for
  if (!/[\u0000-\u001f\u007f]/.test(path)) return path
  throw new Refusal('usage', `the path ${JSON.stringify(path)} holds control characters; choose another`)
}

function userOf(named: string | undefined): string {
  const { uid, name } = currentUser()
  const user = named ?? (uid === 0 ? 'dash' : name)
  if (/^(?:[A-Za-z_][\w.-]{0,31}|\d{1,10})$/.test(user)) return user
  throw new Refusal('usage', `--user ${JSON.stringify(user)} is no name and no number of a user`)
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
  throw new Refusal('usage', `--write-units ${folder} is no folder; create it, or name another`)
}

/**
 * This command founds an installation: it alone creates a data folder that is named. Above it nothing is created, since
 * what is missing there may be a disk that is not mounted.
 *
 * @returns true when it was created
 */
function createDataFolder({ dataDir, dataDirUsed, stateInDataDir, originOf }: Config): boolean {
  if ((!dataDirUsed && !stateInDataDir) || existsSync(dataDir)) return false
  try {
    mkdirSync(dataDir, { mode: 0o700 })
    return true
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw badValue(
      originOf('DASH_DATA_DIR'),
      `the data folder ${dataDir} cannot be created (${why}); choose another with --data-dir`,
    )
  }
}

function isUtc(): boolean {
  return /^(?:Etc\/)?(?:UTC|UCT|Universal|Zulu)$/.test(new Intl.DateTimeFormat().resolvedOptions().timeZone)
}

/** What a person does next, on standard error. */
function tellWhatIsLeft(
  { terminal }: BareContext,
  { node, program, dotenv, user, written, textfileDir }: Installation,
  { written: wrote, created, kinds }: { written: boolean; created: boolean; kinds: readonly Printed[] },
): void {
  const { note } = terminal
  if (wrote) note(`${dotenv} is written; it holds a fresh secret and is readable by its owner alone`)
  if (created) for (const folder of written) note(`${folder} is created`)
  // Containers have a user and a volume of their own.
  if (!kinds.includes('containers')) {
    if (user !== currentUser().name)
      for (const folder of written)
        note(`give ${folder} to the user of the services: chown -R ${ownerWord(user)} ${folder}`)
    if (textfileDir !== null)
      note(`the user ${user} must be able to write in ${textfileDir} (DASH_METRICS_TEXTFILE_DIR)`)
    if (user === 'dash' && currentUser().uid === 0)
      note('the user: useradd --system --user-group --no-create-home --shell /usr/sbin/nologin dash')
  }
  if (kinds.includes('cron') && !kinds.includes('systemd'))
    note(`cron starts the jobs alone; the server: ${node} ${program} serve --dotenv ${dotenv}`)
  note(`check everything: ${node} ${program} doctor --dotenv ${dotenv}`)
}

/**
 * @param advice what to do about a file that is there
 * @throws Refusal `configuration`
 */
export function requireAbsent(path: string, advice = 'move it away, or name another folder'): void {
  // A link that leads nowhere is there too.
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return
  throw configurationError(`${path} is there already and is not overwritten; ${advice}`)
}

/**
 * Writes a file that was not there, durably; nothing is left of one that could not be written whole.
 *
 * @throws Refusal `configuration`
 */
export function writeNew(path: string, text: string, mode: number): void {
  let file: number
  try {
    file = openSync(path, 'wx', mode)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') requireAbsent(path)
    throw notWritten(path, error)
  }
  try {
    // A unit is read by others than its owner, whatever the mask is.
    fchmodSync(file, mode)
    writeSync(file, text)
    fsyncSync(file)
  } catch (error) {
    rmSync(path, { force: true })
    throw notWritten(path, error)
  } finally {
    closeSync(file)
  }
}

function notWritten(path: string, error: unknown): Error {
  const why = error instanceof Error ? error.message : String(error)
  return configurationError(`${path} cannot be written (${why})`)
}
