import { lstatSync, statSync } from 'node:fs'
import { devNull } from 'node:os'
import { resolve } from 'node:path'
import { Refusal, messageOf } from '../../domain/refusal.ts'
import { NOT_UTF_8, readNamedFile } from './environment.ts'
import { inGroups, namedVariables } from './variables.ts'
import type { NamedVariable } from './variables.ts'

/** Path of the env file, which need not exist. */
export function dotenvPath(named: string | undefined, cwd: string): string {
  return resolve(cwd, named ?? '.env')
}

/**
 * Reads an env file.
 *
 * @param named path of the file; absent: `.env`, which need not exist
 * @param flag flag that named it
 * @returns its variables; null if none was named and the default one does not exist
 * @throws Refusal `configuration` if it cannot be parsed; if it cannot be read, `usage` if a flag named it, else
 *   `configuration`
 */
export function readDotenv(
  named: string | undefined,
  cwd: string,
  flag = '--dotenv',
): NodeJS.Dict<string> | null {
  const path = dotenvPath(named, cwd)
  // A link that leads nowhere is a file that is not mounted.
  if (named === undefined && !lstatSync(path, { throwIfNoEntry: false })) return null
  return parseDotenv(bytesOf(path, named, flag), path)
}

/** Contents of pipes (`--dotenv <(…)`, or of a password manager), which can be read once. */
const pipes = new Map<string, Uint8Array>()

function bytesOf(path: string, named: string | undefined, flag: string): Uint8Array {
  try {
    const stats = statSync(path)
    if (!stats.isFile() && !stats.isFIFO() && path !== devNull) throw new Error('it is not a file')
    const bytes = pipes.get(path) ?? readNamedFile(path)
    if (stats.isFIFO()) pipes.set(path, bytes)
    return bytes
  } catch (error) {
    const why = messageOf(error)
    throw named === undefined
      ? new Refusal('configuration', `the env file ${path} cannot be read (${why})`)
      : new Refusal('usage', `${flag} ${JSON.stringify(named)} cannot be read (${why})`)
  }
}

/** Spaces also as web pages and other editors leave them, and a byte order mark inside a file that was joined from two. */
const BLANK = String.raw`[\t\p{Zs}\u200B\uFEFF]`

/** A line without a setting, with its end. */
const SKIPPED = new RegExp(String.raw`${BLANK}*(?:#[^\n]*)?\n`, 'uy')

/**
 * A name with a quoted value, which may contain line ends, or with a plain one, where a comment follows a blank. A double
 * quote in double quotes is written `\"`. A plain value has no control characters, other line separators and further names
 * as in a line of a shell (`A=1 B=2`), after which a setting would be lost, and does not begin with a quote of a word
 * processor.
 */
const ENTRY = new RegExp(
  String.raw`${BLANK}*(?:export${BLANK}+)?([A-Za-z_]\w*)${BLANK}*=${BLANK}*(?:` +
    String.raw`(['"\x60])((?:(?!\2)[^])*|(?:\\"|(?!\2)[^])*)\2${BLANK}*(?:#[^\n]*)?|` +
    String.raw`(?!['"\x60“”„‘’‚«»])((?:(?!${BLANK}[A-Z][A-Z\d_]*=)(?:[^\p{Cc}\u2028\u2029]|\t))*?)${BLANK}*(?:(?<=${BLANK})#[^\n]*)?)\n`,
  'uy',
)

/**
 * Parses an env file (docs/configuration.md). The parser of Node and those of packages skip a line that they cannot
 * read, some of them also the next one. Here it is an error: a setting that is lost sends data to the default folder.
 *
 * @param path of the file, for messages
 * @throws Refusal `configuration` with the number of the first line that cannot be read, without its text, which may
 *   be a secret
 */
export function parseDotenv(bytes: Uint8Array, path: string): Record<string, string> {
  // The decoder strips a byte order mark. With a final line end, every line ends with one.
  const text = `${new TextDecoder().decode(bytes).replaceAll(/\r\n?/g, '\n')}\n`
  const unreadable = (at: number, why: string): Refusal => {
    const line = text.slice(0, at).split('\n').length
    return new Refusal('configuration', `the env file ${path} cannot be read: line ${line} ${why}`)
  }
  const foreign = text.search(NOT_UTF_8)
  if (foreign >= 0) throw unreadable(foreign, 'is not UTF-8 text; save the file as UTF-8')
  const values: Record<string, string> = {}
  for (let at = 0; at < text.length;) {
    const line = matchAt(SKIPPED, text, at) ?? matchAt(ENTRY, text, at)
    if (line === null)
      throw unreadable(
        at,
        'is neither NAME=value nor a comment; write one setting a line, start a comment with #, close every quote, ' +
          'and quote with \' or "',
      )
    const [whole, name, quote, quoted, plain = ''] = line
    // As in other env files, double quotes know few escapes.
    const value =
      quote === '"' ? quoted?.replace(/\\([n"])/g, (_, sign) => (sign === 'n' ? '\n' : '"')) : quoted
    if (name !== undefined) values[name] = value ?? plain
    at += whole.length
  }
  return values
}

function matchAt(sticky: RegExp, text: string, at: number): RegExpExecArray | null {
  sticky.lastIndex = at
  return sticky.exec(text)
}

const HEADER = `# Settings of dash, written by "dash init". Flags and environment variables override this file.
# "dash config" shows the effective values, "dash doctor" checks them. Keep this file private: it contains secrets.
# A secret can be in a separate file instead: NAME_FILE=/path/to/file.
`

/**
 * Returns the text of an env file: every variable with its meaning, the chosen ones set, all others commented out.
 *
 * @param chosen values by variable name
 * @throws Refusal `usage` for a value no env file can hold
 */
export function envFile(chosen: Readonly<Record<string, string>>): string {
  const groups = inGroups(namedVariables).map(([title, variables]) =>
    [`# --- ${title}`, ...variables.map((variable) => entry(variable, chosen[variable.name]))].join('\n\n'),
  )
  return `${HEADER}\n${groups.join('\n\n')}\n`
}

function entry({ name, meaning, standard, unset }: NamedVariable, value: string | undefined): string {
  const otherwise = standard === null && unset !== undefined ? ` (not set: ${unset})` : ''
  const line = value === undefined ? `#${name}=${standard ?? ''}` : `${name}=${quotedValue(name, value)}`
  return `# ${`${meaning}${otherwise}`.replaceAll('`', '')}\n${line}`
}

/**
 * Quotes a value with a quotation mark that it does not contain, because readers of env files differ in their escapes.
 *
 * @throws Refusal `usage` if it contains all of them
 */
function quotedValue(name: string, value: string): string {
  if (/^[\w.:/@%+=,?&~-]+$/.test(value)) return value
  const quote = ["'", '`', '"'].find((each) => !value.includes(each))
  const written = `${quote}${value}${quote}`
  if (quote !== undefined && parseDotenv(Buffer.from(`${name}=${written}`), '')[name] === value)
    return written
  throw new Refusal('usage', `the value of ${name} does not fit into an env file; remove its quotes`)
}
