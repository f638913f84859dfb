import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { Refusal } from '../../domain/refusal.ts'
import type { StoreLocation } from '../../domain/refusal.ts'
import type { BareContext } from '../context.ts'
import { configFrom } from './config.ts'
import type { Config } from './config.ts'
import { dotenvPath, readDotenv } from './dotenv.ts'
import { withoutSecrets } from './environment.ts'
import type { OriginOf } from './environment.ts'
import { SETTING_FLAGS } from './flags.ts'
import type { ConfigFlags } from './flags.ts'
import type { Terminal } from '../terminal.ts'
import { SECRETS, unknownNames } from './variables.ts'

/** Reads flags, environment and env file into one configuration; see {@link configFrom}. */
export function readConfig(flags: ConfigFlags, env: NodeJS.ProcessEnv, cwd: string): Config {
  const { values, originOf } = gatherSettings({ flags, env, cwd })
  return configFrom(values, cwd, originOf)
}

/** Where a command's settings come from; relative paths in them are relative to `cwd`. */
type SettingSources = Pick<BareContext, 'flags' | 'env' | 'cwd'>

/** All variables that are set, valid or not. */
export interface GivenSettings {
  values: NodeJS.Dict<string>
  originOf: OriginOf
  /** Path of the env file; null if there is none. */
  dotenv: string | null
}

/**
 * Merges flags, environment and env file, in this order of precedence.
 *
 * @param file variables of the env file; null if there is none
 * @throws Refusal as {@link readDotenv}
 */
export function gatherSettings(
  { flags, env, cwd }: SettingSources,
  file = readDotenv(flags.dotenv, cwd),
): GivenSettings {
  const { values, originOf } = flagSettings(flags)
  const dotenv = file === null ? null : dotenvPath(flags.dotenv, cwd)
  return {
    values: { ...withoutOverridden(file ?? {}, env), ...env, ...values },
    originOf: (name) => ({
      ...originOf(name),
      file: name in values || env[name] !== undefined || file?.[name] === undefined ? null : dotenv,
    }),
    dotenv,
  }
}

/** An env file without the secrets that the environment gives in their other form: `NAME` or `NAME_FILE`. */
function withoutOverridden(file: NodeJS.Dict<string>, env: NodeJS.ProcessEnv): NodeJS.Dict<string> {
  const forms = SECRETS.map((name) => [name, `${name}_FILE`])
  const isOverridden = (name: string): boolean =>
    forms.some((pair) => pair.includes(name) && pair.some((form) => form !== name && env[form]))
  return Object.fromEntries(Object.entries(file).filter(([name]) => !isOverridden(name)))
}

/** Names the `DASH_` variables that do not exist, such as misspelt ones, on standard error. */
export function noteUnknownSettings(values: NodeJS.Dict<string>, { note }: Pick<Terminal, 'note'>): void {
  for (const name of unknownNames(values))
    note(`${name} is set, but dash has no such variable; dash config lists all names`)
}

export function flagSettings(flags: ConfigFlags): { values: Record<string, string>; originOf: OriginOf } {
  const given = Object.entries(SETTING_FLAGS).flatMap(([name, { key, flag }]) => {
    const value = flags[key]
    return value === undefined ? [] : [{ name, flag: flag.replace(/ .*/, ''), value }]
  })
  return {
    values: Object.fromEntries(given.map(({ name, value }) => [name, value])),
    originOf: (name) => ({ flag: given.find((each) => each.name === name)?.flag ?? null, file: null }),
  }
}

const LOCATIONS = ['DASH_DATA_DIR', 'DASH_DATABASE_URL', 'DASH_STORE_URL'] as const
const ALL_LOCATIONS = [...LOCATIONS, 'DASH_LEDGER_URL', 'DASH_FEED_URL', 'DASH_STATE_URL']

/**
 * Configuration of a second archive, such as the target of a copy. Other settings are those of the command itself,
 * except for the location of the stores.
 *
 * @param targets a data folder, or a database URL and a store URL, or an env file that holds either
 * @throws Refusal `usage` if `targets` do not locate both ledger and objects, or locate one of them twice
 */
export function readTargetConfig(targets: readonly string[], { flags, env, cwd }: SettingSources): Config {
  const [first = ''] = targets
  const isMissingFile = targetSetting(first) === 'DASH_DATA_DIR' && first.endsWith('.env')
  const isFile = statSync(resolve(cwd, first), { throwIfNoEntry: false })?.isFile() ?? isMissingFile
  if (targets.length === 1 && isFile) return targetFile(first, cwd)
  const named: NodeJS.Dict<string> = Object.fromEntries(
    targets.map((target) => [targetSetting(target), target]),
  )
  const isWhole = named['DASH_DATA_DIR'] !== undefined || targets.length > 1
  if (!isWhole || Object.keys(named).length < targets.length) {
    const advice = 'give a data folder, or a database URL and a store URL'
    throw usage(`--to ${targets.map(withoutSecrets).join(' ')} is not one whole target; ${advice}`)
  }
  const own: NodeJS.Dict<string> = { ...readDotenv(flags.dotenv, cwd), ...env }
  for (const location of ALL_LOCATIONS) delete own[location]
  return configFrom({ ...own, ...named }, cwd, (name) => ({
    flag: name in named ? '--to' : null,
    file: null,
  }))
}

/**
 * Location of a tree of static files: a folder, or a bucket with the credentials of the object store.
 *
 * @param target a path, or a URL in the syntax of DASH_STORE_URL
 * @param label of the target in messages
 * @throws Refusal `usage` if the URL is invalid
 */
export function readTreeLocation(target: string, label: string, sources: SettingSources): StoreLocation {
  const { cwd } = sources
  if (targetSetting(target) !== 'DASH_STORE_URL') {
    if (/^[a-z][a-z\d+.-]*:\/\//i.test(target))
      throw usage(`${label} ${JSON.stringify(target)} is neither a folder nor a bucket (s3://…)`)
    return { kind: 'file', path: resolve(cwd, target) }
  }
  const { values, originOf } = gatherSettings(sources)
  return configFrom({ ...values, DASH_STORE_URL: target }, cwd, (name) =>
    name === 'DASH_STORE_URL' ? { flag: label, file: null } : originOf(name),
  ).store
}

function targetFile(path: string, cwd: string): Config {
  const file = readDotenv(path, cwd, '--to') ?? {}
  const hasLedger = Boolean(file['DASH_DATABASE_URL'] || file['DASH_LEDGER_URL'])
  if (file['DASH_DATA_DIR'] || (file['DASH_STORE_URL'] && hasLedger))
    return configFrom(file, cwd, () => ({ flag: null, file: resolve(cwd, path) }))
  const missing = 'DASH_DATA_DIR, or both DASH_STORE_URL and DASH_DATABASE_URL'
  throw usage(`--to ${path}: the env file must set ${missing}`)
}

function targetSetting(target: string): (typeof LOCATIONS)[number] {
  if (/^(s3|file):/.test(target)) return 'DASH_STORE_URL'
  return /^(https?|libsql):/.test(target) ? 'DASH_DATABASE_URL' : 'DASH_DATA_DIR'
}

const usage = (detail: string): Refusal<'usage'> => new Refusal('usage', detail)
