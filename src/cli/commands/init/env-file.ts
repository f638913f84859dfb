import { parseEnv } from 'node:util'
import { Refusal } from '../../../domain/refusal.ts'
import { GROUPS } from '../../settings/variable.ts'
import { namedVariables } from '../../settings/variables.ts'
import type { NamedVariable } from '../../settings/variables.ts'

/**
 * The text of an env file: every variable with what it does, those that were chosen set, all others commented out.
 *
 * @param chosen values by the names of their variables
 * @throws Refusal `usage` for a value no env file can hold
 */
export function envFile(chosen: Readonly<Record<string, string>>): string {
  const groups = Object.entries(GROUPS).map(([group, title]) => {
    const variables = namedVariables.filter((variable) => variable.group === group)
    return [`# --- ${title}`, ...variables.map((variable) => entry(variable, chosen[variable.name]))].join(
      '\n\n',
    )
  })
  const text = `${HEADER}\n${groups.join('\n\n')}\n`
  const read = parseEnv(text)
  const lost = Object.keys(chosen).find((name) => read[name] !== chosen[name])
  if (lost === undefined) return text
  throw new Refusal(
    'usage',
    `${lost} has a value that no env file can hold; leave quotes and line ends out of it`,
  )
}

const HEADER = `# Settings of dash, written by "dash init". Flags and the environment win over this file.
# "dash config" shows what counts, "dash doctor" checks it. Keep this file to yourself: it holds secrets.
# A secret may stand in a file instead: NAME_FILE=/path/to/it.
`

function entry({ name, meaning, standard, unset }: NamedVariable, value: string | undefined): string {
  const plain = (words: string): string => words.replaceAll('`', '')
  const otherwise = standard === null && unset !== undefined ? ` (not set: ${plain(unset)})` : ''
  const line = value === undefined ? `#${name}=${standard ?? ''}` : `${name}=${quoted(value)}`
  return `# ${plain(meaning)}${otherwise}\n${line}`
}

/** Env files know no escapes: a value is put between quotes it does not hold itself. */
function quoted(value: string): string {
  if (/^[\w.:/@%+=,?&~-]+$/.test(value)) return value
  const quote = ["'", '"', '`'].find((each) => !value.includes(each)) ?? "'"
  return `${quote}${value}${quote}`
}
