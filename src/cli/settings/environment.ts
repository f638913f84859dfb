import { resolve } from 'node:path'
import { closeSync, constants, fstatSync, openSync, readFileSync, readSync } from 'node:fs'
import { z } from 'zod'
import { isHttpUrl } from '../../domain/text.ts'
import { Refusal, errorCode, messageOf } from '../../domain/refusal.ts'
import { parseWhole } from './rules.ts'
import { SECRETS, VARIABLES } from './variables.ts'

/** UTF-16 has a NUL in every ASCII character; bytes that are not UTF-8 are decoded as U+FFFD. */
export const NOT_UTF_8 = /[\0\uFFFD]/

/** Placeholder for secrets in output. */
export const NOT_SHOWN = '(not shown)'

/** URL parameters that are not secret; `endpoint` is itself a URL, whose user part would be one. */
const SHOWN_PARAMETERS: ReadonlySet<string> = new Set(['endpoint', 'region', 'tls'])
const PLAIN_VALUE = /^(?:[\w.:/-]|%3a|%2f)+$/i

/**
 * Masks secrets in a URL: the user part, and every parameter that is not known to be harmless. Other text is
 * returned unchanged.
 *
 * @param shown URL, in quotes or not
 */
export function withoutSecrets(shown: string): string {
  const [, open = '', text = '', close = ''] = /^("?)(.*?)("?)$/s.exec(shown) ?? []
  if (!/^\s*[a-z][a-z0-9+.-]*:/i.test(text) || /^\s*file:/i.test(text)) return shown
  const [, address = '', query] = /^([^?]*)(?:\?(.*))?$/s.exec(text) ?? []
  // Up to the last @: a password may contain slashes.
  const masked = address.replace(/\/\/.*@/s, `//${NOT_SHOWN}@`)
  const parameters = query === undefined ? '' : `?${query.split('&').map(maskedParameter).join('&')}`
  return `${open}${masked}${parameters}${close}`
}

function maskedParameter(parameter: string): string {
  const [, name = '', value] = /^([^=]*)(?:=(.*))?$/s.exec(parameter) ?? []
  if (value === undefined) return name === '' ? '' : NOT_SHOWN
  if (value === '') return parameter
  return SHOWN_PARAMETERS.has(name) && PLAIN_VALUE.test(value) ? parameter : `${name}=${NOT_SHOWN}`
}

/** Origin of a value; both null: the environment. */
export interface SettingOrigin {
  /** Flag, as in `--port`. */
  flag: string | null
  /** Path of the env file. */
  file: string | null
}

export type OriginOf = (name: string) => SettingOrigin

export const inEnvironment: OriginOf = () => ({ flag: null, file: null })

/**
 * Label of a setting in messages: its flag, else its variable and env file.
 *
 * @param value value to show, without secrets; absent: no value is shown
 */
export function settingLabel(name: string, { flag, file }: SettingOrigin, value?: string): string {
  if (flag !== null) return value === undefined ? flag : `${flag} ${value}`
  return `${name}${value === undefined ? '' : `=${value}`}${file === null ? '' : ` in ${file}`}`
}

type Rules = { [Name in keyof typeof VARIABLES]: (typeof VARIABLES)[Name]['rule'] }

const environment = z.object(
  Object.fromEntries(Object.entries(VARIABLES).map(([name, { rule }]) => [name, rule])) as Rules,
)

/** Parsed value or default of every variable. */
export type Settings = z.infer<typeof environment>

interface SettingProblem {
  /** One line, without secrets. */
  message: string
  /** True if a flag gave the value. */
  isUsage: boolean
}

export interface ExaminedSettings {
  /** null if any value is invalid. */
  settings: Settings | null
  /** All variables that are set, with the secrets from files. */
  values: Readonly<Record<string, string>>
  problems: readonly SettingProblem[]
}

/**
 * Parses variables by their rules; variables of other programs are ignored.
 *
 * @param cwd base folder of relative paths to secrets
 * @throws Refusal `configuration` with all invalid values; `usage` if a flag gave one of them
 */
export function parseEnvironment(given: NodeJS.Dict<string>, cwd: string, originOf?: OriginOf): Settings {
  const { settings, problems } = examineEnvironment(given, cwd, originOf)
  if (settings !== null) return settings
  const isUsage = problems.some((problem) => problem.isUsage)
  throw new Refusal(isUsage ? 'usage' : 'configuration', problems.map(({ message }) => message).join('; '))
}

/** Like {@link parseEnvironment}, but returns the problems. */
export function examineEnvironment(
  given: NodeJS.Dict<string>,
  cwd: string,
  originOf: OriginOf = inEnvironment,
): ExaminedSettings {
  // An empty variable counts as unset: shells and unit files switch a setting off with `FOO=`.
  const set = Object.entries(given).filter((entry): entry is [string, string] => Boolean(entry[1]))
  const named = Object.fromEntries(set)
  const { secrets, problems } = readSecretFiles(named, cwd)
  const values = { ...named, ...secrets }
  const parsed = environment.safeParse(values)
  for (const { path, message } of parsed.error?.issues ?? []) {
    const name = path.join('.')
    const isSecret = SECRETS.some((secret) => secret === name)
    const file = name in secrets ? `${name}_FILE` : null
    const secret = file === null ? NOT_SHOWN : `${NOT_SHOWN} from ${file}=${JSON.stringify(values[file])}`
    const shown = isSecret ? secret : withoutSecrets(JSON.stringify(values[name] ?? ''))
    const origin = originOf(file ?? name)
    const isUsage = origin.flag !== null
    problems.push({ message: `${settingLabel(name, origin, shown)} ${message}`, isUsage })
  }
  problems.push(...problemsTogether(values))
  return { settings: problems.length === 0 ? (parsed.data ?? null) : null, values, problems }
}

const PAIRS = [
  ['DASH_VERIFICATION_SITE_KEY', 'DASH_VERIFICATION_SECRET'],
  ['DASH_CHAT_PRICE_INPUT', 'DASH_CHAT_PRICE_OUTPUT'],
  ['DASH_MODEL_WEBHOOK_URL', 'DASH_MODEL_WEBHOOK_SECRET'],
] as const

function problemsTogether(values: Readonly<Record<string, string>>): SettingProblem[] {
  const keys = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']
  const missing = values['DASH_STORE_URL']?.startsWith('s3:') ? keys.filter((name) => !values[name]) : []
  const halves = PAIRS.filter((pair) => pair.filter((name) => values[name] !== undefined).length === 1)
  return [
    ...(missing.length > 0 ? [`the S3 store needs ${missing.join(' and ')}; set each, or its _FILE`] : []),
    ...halves.map((pair) => `${pair.join(' and ')} need each other; set both or neither`),
  ].map((message) => ({ message, isUsage: false }))
}

/** Reads the secrets of `_FILE` variables, without their final newline. */
function readSecretFiles(
  values: Readonly<Record<string, string>>,
  cwd: string,
): { secrets: Record<string, string>; problems: SettingProblem[] } {
  const secrets: Record<string, string> = {}
  const problems: SettingProblem[] = []
  for (const name of SECRETS) {
    const path = values[`${name}_FILE`]
    if (path === undefined) continue
    const secret = readSecret(name, path, values[name] !== undefined, cwd)
    if (typeof secret === 'string') secrets[name] = secret
    else problems.push({ message: secret.problem, isUsage: false })
  }
  return { secrets, problems }
}

function readSecret(name: string, path: string, isSet: boolean, cwd: string): string | { problem: string } {
  if (isSet) return { problem: `${name} and ${name}_FILE are both set; remove one` }
  const named = `${name}_FILE=${JSON.stringify(path)}`
  try {
    // The decoder strips a byte order mark.
    const text = new TextDecoder().decode(readNamedFile(resolve(cwd, path)))
    if (NOT_UTF_8.test(text)) return { problem: `${named} is not UTF-8 text; save the file as UTF-8` }
    const secret = text.replace(/\r?\n$/, '')
    return secret === '' ? { problem: `${named} is empty` } : secret
  } catch (error) {
    return { problem: `${named} cannot be read (${messageOf(error)})` }
  }
}

/** Returns the refusal of an unusable value: `usage` if a flag gave it, else `configuration`. */
export function badValue({ flag }: SettingOrigin, detail: string): Refusal<'usage' | 'configuration'> {
  return new Refusal(flag === null ? 'configuration' : 'usage', detail)
}

/**
 * Parses the value of a flag.
 *
 * @param what description of a valid value, such as in `a day such as 2026-01-31`
 * @throws Refusal `usage` if `parse` returns null
 */
export function flagValue<T>(flag: string, text: string, what: string, parse: (text: string) => T | null): T {
  const value = parse(text)
  if (value === null) throw new Refusal('usage', `${flag} ${JSON.stringify(text)} must be ${what}`)
  return value
}

/**
 * Parses a whole number that a flag gives.
 *
 * @throws Refusal `usage` if it is not from `least` to `most`
 */
export function wholeFlag(flag: string, text: string, most: number, least = 1): number {
  return flagValue(flag, text, `a whole number from ${least} to ${most}`, (digits) =>
    parseWhole(digits, least, most),
  )
}

/**
 * Returns the base URL that `--url` gives, without a trailing slash.
 *
 * @throws Refusal `usage` if the text is not an http(s) URL without user, query and fragment
 */
export function hostFlag(text: string): string {
  return flagValue('--url', text, 'an absolute http(s) URL without user, query or fragment', (url) =>
    isHttpUrl(url) && !/[?#@]/.test(url) ? url.replace(/\/+$/, '') : null,
  )
}

/** Waits for a pipe: for its writer, and for what a writer still sends. No signal is handled meanwhile. */
const NO_WRITER_MS = 1_000
const SLOW_WRITER_MS = 20_000
const PAUSE_MS = 20

const CHUNK_BYTES = 64 * 1024

/**
 * Reads a file that an operator names, which may be a pipe of a shell (`<(…)`). Opening a pipe without a writer would
 * block this thread for ever, signals included.
 *
 * @throws Error of the system, or for a pipe to which nothing is written
 */
export function readNamedFile(path: string): Buffer {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    return fstatSync(file).isFIFO() ? readPipe(file) : readFileSync(file)
  } finally {
    closeSync(file)
  }
}

function readPipe(file: number): Buffer {
  const chunks: Buffer[] = []
  const startedAt = performance.now()
  for (;;) {
    const chunk = readAvailable(file)
    if (chunk?.byteLength === 0 && chunks.length > 0) return Buffer.concat(chunks)
    if (chunk !== null && chunk.byteLength > 0) chunks.push(chunk)
    else if (performance.now() - startedAt > (chunk === null ? SLOW_WRITER_MS : NO_WRITER_MS))
      throw new Error(chunk === null ? 'its writer is too slow' : 'nothing is written to the pipe')
    else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS)
  }
}

/** @returns an empty chunk at the end, and while a pipe has no writer; null while a writer has sent nothing */
function readAvailable(file: number): Buffer | null {
  const chunk = Buffer.alloc(CHUNK_BYTES)
  try {
    return chunk.subarray(0, readSync(file, chunk))
  } catch (error) {
    if (errorCode(error) === 'EAGAIN') return null
    throw error
  }
}
