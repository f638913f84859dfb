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
import { Refusal, messageOf } from '../../../domain/refusal.ts'
import type { BareContext } from '../../context.ts'
import { fileOf } from '../../data-folder.ts'
import { EXIT } from '../../exit-codes.ts'
import { currentUser, ownerName } from '../../process-identity.ts'
import { configFrom } from '../../settings/config.ts'
import type { Config } from '../../settings/config.ts'
import { badValue, parseEnvironment } from '../../settings/environment.ts'
import { SETTING_FLAGS } from '../../settings/flags.ts'
import type { ConfigFlags } from '../../settings/flags.ts'
import { dotenvPath, flagSettings, readConfig } from '../../settings/read-config.ts'
import { envFile } from './env-file.ts'
import type { PromptContext, ChosenSettings, OutputKind } from './env-file.ts'
import { containerCommands, crontab, systemdUnits } from './units.ts'
import type { Installation, Unit } from './units.ts'

export interface InitFlags extends ConfigFlags {
  user?: string
  yes: boolean
  /** False for `--no-env`. */
  env: boolean
  writeUnits?: string
  /** Absent: a person is asked; without one the units and the crontab are printed. */
  print?: OutputKind
}

/** Bytes of a fresh session secret: twice the required length. */
const SECRET_BYTES = 64

/**
 * `dash init`: a commented env file with a fresh secret, and what runs everything on this machine. No file that is there is
 * overwritten, and a wrong value is refused before anything is written.
 *
 * @returns 0, or 130 when the person gave up
 * @throws Refusal `usage`, `configuration`
 */
export async function initCommand(context: BareContext, flags: InitFlags): Promise<number> {
  const { terminal, cwd, env, signal } = context
  const dotenv = dotenvPath(flags.dotenv, cwd)
  const choices = await choose(context, flags, dotenv)
  if (choices === null) {
    signal.throwIfAborted()
    terminal.error('nothing was written')
    terminal.failure('nothing was written', EXIT.interrupted)
    return EXIT.interrupted
  }
  const { chosen, kinds } = choices
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
  const text = printedText(kinds, result)
  if (text !== '' || terminal.json) terminal.result(result, text)
  noteWhatIsLeft(context, installation, { ...result, kinds })
  return EXIT.done
}

interface InitChoices {
  /** Values by the names of variables; null: no env file is to be written. */
  chosen: ChosenSettings | null
  kinds: readonly OutputKind[]
}

/**
 * What is to be set and printed, as flags say, and a person at a terminal, who is asked for the rest.
 *
 * @returns null when the person gave up
 */
async function choose(context: BareContext, flags: InitFlags, dotenv: string): Promise<InitChoices | null> {
  const { terminal, stdin, stderr, cwd, signal } = context
  const isAsked = stdin.isTTY && terminal.interactive && !terminal.json && !flags.yes
  const prompts: PromptContext | null = isAsked ? { output: stderr, signal } : null
  const known = flags.env ? knownSettings(context, flags, dotenv) : null
  const dataDir = resolve(cwd, 'dash-data')
  const settings =
    known && prompts
      ? await (await import('./env-file.ts')).promptForSettings(known, dataDir, prompts)
      : known
  if (known && !settings) return null
  const kinds = await kindsPrinted(flags, prompts)
  if (kinds === null) return null
  const chosen = settings && {
    ...settings,
    DASH_DATA_DIR: resolve(cwd, settings['DASH_DATA_DIR'] ?? dataDir),
    DASH_SESSION_SECRET: randomBytes(SECRET_BYTES).toString('base64url'),
  }
  return { chosen, kinds }
}

/** The settings of flags, and of the environment those that a flag may give: every command runs on them. */
function knownSettings({ cwd, env }: BareContext, flags: InitFlags, dotenv: string): ChosenSettings {
  requireAbsent(dotenv, 'move it away, name another with --dotenv, or leave it as it is with --no-env')
  if (!existsSync(dirname(dotenv)))
    throw new Refusal('usage', `--dotenv: the folder ${dirname(dotenv)} does not exist; create it`)
  const { values, originOf } = flagSettings(flags)
  const inherited = Object.keys(SETTING_FLAGS).map((name) => [name, env[name]] as const)
  const set = inherited.filter((entry): entry is [string, string] => Boolean(entry[1]))
  const known = { ...Object.fromEntries(set), ...values }
  parseEnvironment(known, cwd, originOf)
  return known
}

/** @returns null when the person gave up */
async function kindsPrinted(
  { print }: InitFlags,
  prompts: PromptContext | null,
): Promise<OutputKind[] | null> {
  if (print !== undefined) return [print]
  // Which of the two a host knows is not known here.
  if (prompts === null) return ['systemd', 'cron']
  const answer = await (await import('./env-file.ts')).promptForOutputs(prompts)
  return answer && [answer]
}

function installationOf(
  { dataDir, dataDirUsed, stateInDataDir, store, drainMs, ledger, feed, state, monitoring }: Config,
  place: Pick<Installation, 'dotenv' | 'folder' | 'user'>,
): Installation {
  const folders = new Set([
    ...(dataDirUsed || stateInDataDir ? [dataDir] : []),
    ...[ledger, feed, state].flatMap((location) => fileOf(location) ?? []).map((path) => dirname(path)),
    ...(store.kind === 'file' ? [store.path] : []),
  ])
  const isInside = (folder: string): boolean => [...folders].some((other) => folder.startsWith(`${other}/`))
  const { textfileDir } = monitoring
  return {
    node: process.execPath,
    program: fileURLToPath(new URL('../../main.js', import.meta.url)),
    root: fileURLToPath(new URL('../../../..', import.meta.url)).replace(/\/$/, ''),
    written: [...folders].filter((folder) => !isInside(folder)).map(onOneLine),
    textfileDir: textfileDir && onOneLine(textfileDir),
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
 * This command founds an installation: it alone creates a data folder that is named. Above it no folder is created, since
 * one that is missing there may be a disk that is not mounted.
 *
 * @returns true when it was created
 */
function createDataFolder({ dataDir, dataDirUsed, stateInDataDir, originOf }: Config): boolean {
  if ((!dataDirUsed && !stateInDataDir) || existsSync(dataDir)) return false
  try {
    mkdirSync(dataDir, { mode: 0o700 })
    return true
  } catch (error) {
    const why = messageOf(error)
    throw badValue(
      originOf('DASH_DATA_DIR'),
      `the data folder ${dataDir} cannot be created (${why}); choose another with --data-dir`,
    )
  }
}

function isUtc(): boolean {
  return /^(?:Etc\/)?(?:UTC|UCT|Universal|Zulu)$/.test(new Intl.DateTimeFormat().resolvedOptions().timeZone)
}

interface Runners {
  units: readonly Unit[]
  /** Paths the units were written to; empty: they are printed. */
  unitFiles: readonly string[]
  crontab: string
  containers?: string
}

function printedText(
  kinds: readonly OutputKind[],
  { units, unitFiles, crontab: lines, containers = '' }: Runners,
): string {
  if (!kinds.includes('systemd')) return `${lines}${containers}`.trimEnd()
  const files =
    unitFiles.length > 0
      ? [`# written:\n${unitFiles.map((path) => `#   ${path}`).join('\n')}\n`]
      : units.map(({ name, text }) => `# --- /etc/systemd/system/${name}\n${text}`)
  const instead = lines === '' ? [] : [`# --- instead of the timers: ${lines.replace(/^# /, '')}`]
  return [...files, ...instead].join('\n').trimEnd()
}

function noteWhatIsLeft(
  { terminal }: BareContext,
  { node, program, dotenv, user, written: folders, textfileDir }: Installation,
  { written, created, kinds }: { written: boolean; created: boolean; kinds: readonly OutputKind[] },
): void {
  const isOther = user !== currentUser().name
  // Containers have a user and a volume of their own.
  const ownUser = kinds.includes('containers')
    ? []
    : [
        ...folders.flatMap((folder) =>
          isOther
            ? [`give ${folder} to the user of the services: chown -R ${ownerName(user)} ${folder}`]
            : [],
        ),
        textfileDir !== null &&
          `the user ${user} must be able to write in ${textfileDir} (DASH_METRICS_TEXTFILE_DIR)`,
        user === 'dash' &&
          currentUser().uid === 0 &&
          'the user: useradd --system --user-group --no-create-home --shell /usr/sbin/nologin dash',
      ]
  const steps = [
    written && `${dotenv} is written; it holds a fresh secret and is readable by its owner alone`,
    ...folders.map((folder) => created && `${folder} is created`),
    ...ownUser,
    kinds.includes('cron') &&
      !kinds.includes('systemd') &&
      `cron starts the jobs alone; the server: ${node} ${program} serve --dotenv ${dotenv}`,
    `check everything: ${node} ${program} doctor --dotenv ${dotenv}`,
  ]
  for (const step of steps) if (step !== false) terminal.note(step)
}

/**
 * @param advice what to do about a file that is there
 * @throws Refusal `configuration`
 */
function requireAbsent(path: string, advice = 'move it away, or name another folder'): void {
  // A link that leads nowhere is there too.
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return
  throw new Refusal('configuration', `${path} is there already and is not overwritten; ${advice}`)
}

/**
 * Writes a file that was not there, durably; a file that could not be written whole is removed.
 *
 * @throws Refusal `configuration`
 */
function writeNew(path: string, text: string, mode: number): void {
  let file: number | null = null
  try {
    file = openSync(path, 'wx', mode)
    // A unit is read by others than its owner, whatever the mask is.
    fchmodSync(file, mode)
    writeSync(file, text)
    fsyncSync(file)
  } catch (error) {
    if (file !== null) rmSync(path, { force: true })
    else if (error instanceof Error && 'code' in error && error.code === 'EEXIST') requireAbsent(path)
    const why = messageOf(error)
    throw new Refusal('configuration', `${path} cannot be written (${why})`)
  } finally {
    if (file !== null) closeSync(file)
  }
}
