import { existsSync, readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { Refusal } from '../../domain/refusal.ts'
import { configOf } from './config.ts'
import type { Config } from './config.ts'
import { configurationError, parseEnvironment, withoutSecrets } from './environment.ts'
import type { SettingOrigin } from './environment.ts'

/** What the command line says; it wins over the environment, which wins over the env file. */
export interface ConfigFlags {
  dataDir?: string | undefined
  dotenv?: string | undefined
  host?: string | undefined
  port?: string | undefined
  baseUrl?: string | undefined
  chatModel?: string | undefined
}

/**
 * Reads flags, environment and env file into one configuration.
 *
 * @param env the process environment
 * @param cwd folder that relative paths start from
 * @throws Refusal `configuration` naming every bad value at once; `usage` when a flag gave one of them
 */
export function readConfig(flags: ConfigFlags, env: NodeJS.ProcessEnv, cwd: string): Config {
  const { values, originOf, dotenv } = gatherSettings(flags, env, cwd)
  const flagOf = flagsOf(flags)
  return configFrom(values, cwd, (name) => ({
    flag: flagOf.get(name) ?? null,
    file: originOf(name) === 'env-file' ? dotenv : null,
  }))
}

/** @param originOf where the value of a variable was given */
export function configFrom(
  values: NodeJS.Dict<string>,
  cwd: string,
  originOf: (name: string) => SettingOrigin,
): Config {
  return configOf(parseEnvironment(values, cwd, originOf), cwd, originOf)
}

/** Flags that give values of settings, by the names of variables. */
const FLAG_OF = {
  DASH_DATA_DIR: { flag: '--data-dir', key: 'dataDir' },
  HOST: { flag: '--host', key: 'host' },
  PORT: { flag: '--port', key: 'port' },
  DASH_BASE_URL: { flag: '--base-url', key: 'baseUrl' },
  DASH_CHAT_MODEL: { flag: '--chat-model', key: 'chatModel' },
} as const

/** Settings that a flag may give. */
export const FLAGGED_SETTINGS = Object.keys(FLAG_OF)

/** Those of a command line that give values of settings, by the names of variables. */
export function flagsOf(flags: ConfigFlags): ReadonlyMap<string, string> {
  const given = Object.entries(FLAG_OF).filter(([, { key }]) => flags[key] !== undefined)
  return new Map(given.map(([name, { flag }]) => [name, flag]))
}

/** Where a variable was set: the one that wins. */
type Origin = 'flag' | 'environment' | 'env-file'

/** Every variable that is set, whatever it is worth. */
export interface GivenSettings {
  values: NodeJS.Dict<string>
  originOf: (name: string) => Origin | null
  /** Path of the env file that was read; null: there is none. */
  dotenv: string | null
}

/**
 * Gathers flags, environment and env file; what wins is the one that counts.
 *
 * @throws Refusal `configuration` when the env file cannot be read, `usage` when --dotenv named it
 */
export function gatherSettings(flags: ConfigFlags, env: NodeJS.ProcessEnv, cwd: string): GivenSettings {
  return gathered(flags, env, readDotenv(flags.dotenv, cwd), dotenvPath(flags.dotenv, cwd))
}

/** As {@link gatherSettings}, for whoever goes on when the env file cannot be read: flags and environment alone. */
export function gatherWithoutFile(flags: ConfigFlags, env: NodeJS.ProcessEnv): GivenSettings {
  return gathered(flags, env, null, null)
}

function gathered(
  flags: ConfigFlags,
  env: NodeJS.ProcessEnv,
  file: NodeJS.Dict<string> | null,
  path: string | null,
): GivenSettings {
  const given: [Origin, NodeJS.Dict<string>][] = [
    ['flag', settingsOf(flags)],
    ['environment', env],
    ['env-file', file ?? {}],
  ]
  return {
    values: { ...file, ...env, ...settingsOf(flags) },
    originOf: (name) => given.find(([, values]) => values[name] !== undefined)?.[0] ?? null,
    dotenv: file === null ? null : path,
  }
}

/** Path of the env file, whether it is there or not. */
export function dotenvPath(named: string | undefined, cwd: string): string {
  return resolve(cwd, named ?? '.env')
}

/** What says where the stores are, and nothing else. */
const LOCATIONS = [
  'DASH_DATA_DIR',
  'DASH_DATABASE_URL',
  'DASH_LEDGER_URL',
  'DASH_FEED_URL',
  'DASH_STATE_URL',
  'DASH_STORE_URL',
] as const

/**
 * The configuration of another archive, which a command line names beside its own: a data folder, a database URL and a
 * store URL, or an env file that holds all of it. What is not named there is as for the command itself, but for where
 * the stores are.
 *
 * @param targets each one folder, one URL, or one env file
 * @throws Refusal `usage` when they do not say where both the ledger and the objects are, or say it twice
 */
export function readTargetConfig(
  targets: readonly string[],
  flags: ConfigFlags,
  env: NodeJS.ProcessEnv,
  cwd: string,
): Config {
  const [first = ''] = targets
  if (targets.length === 1 && statSync(resolve(cwd, first), { throwIfNoEntry: false })?.isFile()) {
    const file = readDotenv(first, cwd, '--to') ?? {}
    const isNamed = (...names: (typeof LOCATIONS)[number][]): boolean =>
      names.some((name) => Boolean(file[name]))
    if (
      isNamed('DASH_DATA_DIR') ||
      (isNamed('DASH_STORE_URL') && isNamed('DASH_DATABASE_URL', 'DASH_LEDGER_URL'))
    ) {
      return configFrom(file, cwd, () => ({ flag: null, file: resolve(cwd, first) }))
    }
    const missing = 'DASH_DATA_DIR, or both DASH_STORE_URL and DASH_DATABASE_URL'
    throw new Refusal('usage', `--to ${first}: the env file must say where both halves go: ${missing}`)
  }
  const named: Record<string, string> = {}
  for (const target of targets) {
    const name = targetSetting(target)
    if (named[name] !== undefined)
      throw new Refusal(
        'usage',
        `--to names two of a kind: ${withoutSecrets(named[name])} and ${withoutSecrets(target)}`,
      )
    named[name] = target
  }
  if (named['DASH_DATA_DIR'] === undefined && targets.length < 2) {
    throw new Refusal(
      'usage',
      `--to ${withoutSecrets(first)} says where one half goes: name a database and a store, or a data folder`,
    )
  }
  const own: NodeJS.Dict<string> = { ...readDotenv(flags.dotenv, cwd), ...env }
  for (const location of LOCATIONS) delete own[location]
  return configFrom({ ...own, ...named }, cwd, (name) => ({
    flag: name in named ? '--to' : null,
    file: null,
  }))
}

function targetSetting(target: string): (typeof LOCATIONS)[number] {
  if (/^(s3|file):/.test(target)) return 'DASH_STORE_URL'
  return /^(https?|libsql):/.test(target) ? 'DASH_DATABASE_URL' : 'DASH_DATA_DIR'
}

/** Values that flags give, by the names of variables. */
export function settingsOf(flags: ConfigFlags): Record<string, string> {
  const given = Object.entries(FLAG_OF).map(([name, { key }]) => [name, flags[key]] as const)
  return Object.fromEntries(given.filter((entry): entry is [string, string] => entry[1] !== undefined))
}

/** What an env file sets; null when none was named and none is there. */
function readDotenv(named: string | undefined, cwd: string, flag = '--dotenv'): NodeJS.Dict<string> | null {
  const path = dotenvPath(named, cwd)
  if (named === undefined && !existsSync(path)) return null
  try {
    if (!statSync(path).isFile()) throw new Error('it is not a file')
    return parseEnv(readFileSync(path, 'utf8'))
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    if (named === undefined) throw configurationError(`the env file ${path} cannot be read (${why})`)
    throw new Refusal('usage', `${flag} ${JSON.stringify(named)} cannot be read (${why})`)
  }
}
