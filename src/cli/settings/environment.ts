import { readFileSync } from 'node:fs'
import { homedir, userInfo } from 'node:os'
import { resolve } from 'node:path'
import { z } from 'zod'
import { Refusal } from '../../domain/refusal.ts'
import { namedVariables } from './variables.ts'
import type { VARIABLES } from './variables.ts'

/** What stands for a secret wherever values are shown. */
export const NOT_SHOWN = '(not shown)'

/** Parameters of addresses that hold no secret by themselves; an `endpoint` is an address again. */
const SHOWN_PARAMETERS: ReadonlySet<string> = new Set(['endpoint', 'region', 'tls'])

/**
 * An address without whatever may be a secret in it: who asks, and every parameter that is not known to hold none. What
 * is no address is returned as it is.
 *
 * @param shown the address, in quotes or not
 */
export function withoutSecrets(shown: string): string {
  const [, open = '', text = '', close = ''] = /^("?)(.*?)("?)$/s.exec(shown) ?? []
  if (!/^\s*[a-z][a-z0-9+.-]*:/i.test(text) || /^\s*file:/i.test(text)) return shown
  const start = text.indexOf('?')
  const place = start === -1 ? text : text.slice(0, start)
  // To the last @: a secret may hold the slash that would end what is before it.
  const masked = place.replace(/\/\/.*@/s, `//${NOT_SHOWN}@`)
  const query =
    start === -1
      ? ''
      : `?${text
          .slice(start + 1)
          .split('&')
          .map(maskedParameter)
          .join('&')}`
  return `${open}${masked}${query}${close}`
}

function maskedParameter(parameter: string): string {
  const [name = '', ...rest] = parameter.split('=')
  const value = rest.join('=')
  if (rest.length === 0) return name === '' ? '' : NOT_SHOWN
  if (value === '') return parameter
  if (!SHOWN_PARAMETERS.has(name)) return `${name}=${NOT_SHOWN}`
  const decoded = decodedOf(value)
  if (decoded === null) return `${name}=${NOT_SHOWN}`
  const masked = withoutSecrets(decoded)
  return masked === decoded ? parameter : `${name}=${masked}`
}

function decodedOf(value: string): string | null {
  try {
    return decodeURIComponent(value)
  } catch {
    return null
  }
}

type Rules = { [Name in keyof typeof VARIABLES]: (typeof VARIABLES)[Name]['rule'] }

/** One schema for every variable (docs/configuration.md): its name, rule and default. */
const environment = z.object(
  Object.fromEntries(namedVariables.map(({ name, rule }) => [name, rule])) as unknown as Rules,
)

const SECRETS_OF_S3 = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'] as const

/** Secrets, each of which may also stand in a file that `<NAME>_FILE` names. */
const SECRETS: readonly string[] = namedVariables.filter(({ secret }) => secret).map(({ name }) => name)

/** Every variable as it was given, or its default. */
export type Settings = z.infer<typeof environment>

/** Where a value was given, for the message about it. */
export interface SettingOrigin {
  /** The flag that gave it; null: none did. */
  flag: string | null
  /** The env file that gave it; null: the environment did. */
  file: string | null
}

/** Where a setting was given that neither a flag nor an env file gave. */
export const IN_ENVIRONMENT: SettingOrigin = { flag: null, file: null }

/**
 * A setting as messages name it: by its flag, else by its variable and the env file it stands in.
 *
 * @param value as it was given, fit to be shown; absent: it is not shown
 */
export function settingWords(name: string, { flag, file }: SettingOrigin, value?: string): string {
  if (flag !== null) return value === undefined ? flag : `${flag} ${value}`
  return `${name}${value === undefined ? '' : `=${value}`}${file === null ? '' : ` in ${file}`}`
}

/** What is wrong with variables. */
interface SettingProblem {
  /** Names of the variables it is about. */
  names: readonly string[]
  /** True when a flag gave the value. */
  isUsage?: boolean
  /** One line, which shows no secret. */
  message: string
}

/** Variables as they were given, examined. */
export interface ExaminedSettings {
  /** null when something is wrong. */
  settings: Settings | null
  /** Every variable that is set, with the secrets that files hold. */
  values: Readonly<Record<string, string>>
  problems: readonly SettingProblem[]
}

/**
 * Parses variables by their schema.
 *
 * @param given variables by name; what is none of ours is left alone
 * @param cwd folder that paths of secrets start from
 * @param originOf where the value of a variable was given; absent: in the environment
 * @throws Refusal `configuration` naming every bad value at once; `usage` when a flag gave one of them
 */
export function parseEnvironment(
  given: NodeJS.Dict<string>,
  cwd: string,
  originOf?: (name: string) => SettingOrigin,
): Settings {
  const { settings, problems } = examineEnvironment(given, cwd, originOf)
  if (settings !== null) return settings
  const detail = problems.map(({ message }) => message).join('; ')
  throw problems.some(({ isUsage }) => isUsage) ? new Refusal('usage', detail) : configurationError(detail)
}

/** As {@link parseEnvironment}, for whoever shows what is wrong. */
export function examineEnvironment(
  given: NodeJS.Dict<string>,
  cwd: string,
  originOf: (name: string) => SettingOrigin = () => IN_ENVIRONMENT,
): ExaminedSettings {
  // An empty variable is an unset one: `FOO= dash …` is how shells and unit files switch a setting off.
  const named = Object.fromEntries(
    Object.entries(given).filter((entry): entry is [string, string] => Boolean(entry[1])),
  )
  const problems: SettingProblem[] = []
  const values = { ...named, ...readSecretFiles(named, cwd, problems) }
  const parsed = environment.safeParse(values)
  if (!parsed.success) {
    for (const issue of parsed.error.issues) {
      const name = issue.path.join('.')
      const shown = SECRETS.includes(name) ? NOT_SHOWN : withoutSecrets(JSON.stringify(values[name] ?? ''))
      const origin = originOf(name)
      const message = `${settingWords(name, origin, shown)} ${issue.message}`
      problems.push({ names: [name], message, isUsage: origin.flag !== null })
    }
  }
  problems.push(...problemsTogether(values))
  const settings = parsed.success && problems.length === 0 ? parsed.data : null
  return { settings, values, problems }
}

/** What is wrong with variables that belong together. */
function problemsTogether(values: Readonly<Record<string, string>>): SettingProblem[] {
  const problems: SettingProblem[] = []
  const missing = SECRETS_OF_S3.filter((name) => values[name] === undefined)
  if (values['DASH_STORE_URL']?.startsWith('s3:') && missing.length > 0) {
    const message = `DASH_STORE_URL names an S3 store, which needs ${missing.join(' and ')} (or each with _FILE)`
    problems.push({ names: missing, message })
  }
  for (const pair of PAIRS) {
    if (pair.filter((name) => values[name] !== undefined).length !== 1) continue
    problems.push({ names: pair, message: `${pair.join(' and ')} belong together: set both, or neither` })
  }
  return problems
}

const PAIRS = [
  ['DASH_VERIFICATION_SITE_KEY', 'DASH_VERIFICATION_SECRET'],
  ['DASH_CHAT_PRICE_INPUT', 'DASH_CHAT_PRICE_OUTPUT'],
] as const

export function configurationError(detail: string): Refusal<'configuration'> {
  return new Refusal('configuration', detail)
}

/** A value that cannot be used: a mistake of the command line when a flag gave it, else of the configuration. */
export function badValue({ flag }: SettingOrigin, detail: string): Refusal<'usage' | 'configuration'> {
  return flag === null ? configurationError(detail) : new Refusal('usage', detail)
}

/** The secrets that files hold, without the newline at their end. */
function readSecretFiles(
  values: Readonly<Record<string, string>>,
  cwd: string,
  problems: SettingProblem[],
): Record<string, string> {
  const secrets: Record<string, string> = {}
  for (const name of SECRETS) {
    const path = values[`${name}_FILE`]
    if (path === undefined) continue
    const wrong = (message: string): void => void problems.push({ names: [name], message })
    if (values[name] !== undefined) {
      wrong(`${name} and ${name}_FILE are both set: leave one of them out`)
      continue
    }
    try {
      const secret = readFileSync(resolve(cwd, path), 'utf8').replace(/\r?\n$/, '')
      if (secret === '') wrong(`${name}_FILE=${JSON.stringify(path)} is empty`)
      else secrets[name] = secret
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      wrong(`${name}_FILE=${JSON.stringify(path)} cannot be read (${why})`)
    }
  }
  return secrets
}

/** The user this process runs as; `name` is the number where the system knows no name, as in many containers. */
export function currentUser(): { uid: number; name: string } {
  try {
    const { uid, username } = userInfo()
    return { uid, name: username }
  } catch (error) {
    const uid = process.getuid?.()
    if (uid === undefined) throw error
    return { uid, name: String(uid) }
  }
}

/** What chown takes for a user and the group of their login; a number that has no name has no such group. */
export function ownerWord(user: string): string {
  return /^\d+$/.test(user) ? user : `${user}:`
}

/** The folder of the user, which `~` stands for; that of the machine where the system knows none. */
export function homeFolder(): string {
  try {
    return homedir()
  } catch {
    return '/'
  }
}
