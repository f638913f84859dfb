import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { z } from 'zod'
import { Refusal } from '../domain/refusal.ts'
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

/**
 * Parses variables by their schema.
 *
 * @param given variables by name; what is none of ours is left alone
 * @param cwd folder that paths of secrets start from
 * @throws Refusal `configuration` naming every bad value at once
 */
export function parseEnvironment(given: NodeJS.Dict<string>, cwd: string): Settings {
  // An empty variable is an unset one: `FOO= dash …` is how shells and unit files switch a setting off.
  const named = Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== undefined && value !== ''),
  )
  const problems: string[] = []
  const values = { ...named, ...readSecretFiles(named, cwd, problems) }
  const parsed = environment.safeParse(values)
  if (!parsed.success) {
    for (const issue of parsed.error.issues) {
      const name = issue.path.join('.')
      const shown = SECRETS.includes(name) ? '(not shown)' : withoutPassword(JSON.stringify(values[name]))
      problems.push(`${name}=${shown} ${issue.message}`)
    }
  }
  const missing = SECRETS_OF_S3.filter((name) => values[name] === undefined)
  if (values['DASH_STORE_URL']?.startsWith('s3:') && missing.length > 0) {
    problems.push(
      `DASH_STORE_URL names an S3 store, which needs ${missing.join(' and ')} (or each with _FILE)`,
    )
  }
  if (
    (values['DASH_VERIFICATION_SITE_KEY'] === undefined) !==
    (values['DASH_VERIFICATION_SECRET'] === undefined)
  ) {
    problems.push(
      'DASH_VERIFICATION_SITE_KEY and DASH_VERIFICATION_SECRET belong together: set both, or neither',
    )
  }
  if ((values['DASH_CHAT_PRICE_INPUT'] === undefined) !== (values['DASH_CHAT_PRICE_OUTPUT'] === undefined)) {
    problems.push('DASH_CHAT_PRICE_INPUT and DASH_CHAT_PRICE_OUTPUT belong together: set both, or neither')
  }
  if (!parsed.success || problems.length > 0) throw configurationError(problems.join('; '))
  return parsed.data
}

export function configurationError(detail: string): Refusal<'configuration'> {
  return new Refusal('configuration', detail)
}

/** A URL may be refused for the password it holds. */
function withoutPassword(shown: string | undefined): string | undefined {
  return shown?.replace(/(\/\/[^/?#:@]*:)[^/?#]*@/, '$1(not shown)@')
}

/** The secrets that files hold, without the newline at their end. */
function readSecretFiles(
  values: Readonly<Record<string, string | undefined>>,
  cwd: string,
  problems: string[],
): Record<string, string> {
  const secrets: Record<string, string> = {}
  for (const name of SECRETS) {
    const path = values[`${name}_FILE`]
    if (path === undefined) continue
    if (values[name] !== undefined) {
      problems.push(`${name} and ${name}_FILE are both set: leave one of them out`)
      continue
    }
    try {
      const secret = readFileSync(resolve(cwd, path), 'utf8').replace(/\r?\n$/, '')
      if (secret === '') problems.push(`${name}_FILE=${JSON.stringify(path)} is empty`)
      else secrets[name] = secret
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      problems.push(`${name}_FILE=${JSON.stringify(path)} cannot be read (${why})`)
    }
  }
  return secrets
}
