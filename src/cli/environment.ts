import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { z } from 'zod'
import { Refusal } from '../domain/refusal.ts'
import { NOT_SHOWN, withoutSecrets } from './masking.ts'
import { namedVariables } from './settings/variables.ts'
import type { VARIABLES } from './settings/variables.ts'

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

/** What is wrong with variables. */
interface SettingProblem {
  /** Names of the variables it is about. */
  names: readonly string[]
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
 * @throws Refusal `configuration` naming every bad value at once
 */
export function parseEnvironment(given: NodeJS.Dict<string>, cwd: string): Settings {
  const { settings, problems } = examineEnvironment(given, cwd)
  if (settings === null) throw configurationError(problems.map(({ message }) => message).join('; '))
  return settings
}

/** As {@link parseEnvironment}, for whoever shows what is wrong. */
export function examineEnvironment(given: NodeJS.Dict<string>, cwd: string): ExaminedSettings {
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
      problems.push({ names: [name], message: `${name}=${shown} ${issue.message}` })
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
