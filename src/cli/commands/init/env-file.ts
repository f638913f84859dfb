import { parseEnv } from 'node:util'
import { isCancel, password, select, text } from '@clack/prompts'
import { Refusal } from '../../../domain/refusal.ts'
import { VARIABLES, inGroups, namedVariables } from '../../settings/variables.ts'
import type { NamedVariable, VariableName } from '../../settings/variables.ts'

const HEADER = `# Settings of dash, written by "dash init". Flags and the environment win over this file.
# "dash config" shows what counts, "dash doctor" checks it. Keep this file to yourself: it holds secrets.
# A secret may stand in a file instead: NAME_FILE=/path/to/it.
`

/**
 * The text of an env file: every variable with its meaning, the chosen ones set, all others commented out.
 *
 * @param chosen values by the names of their variables
 * @throws Refusal `usage` for a value no env file can hold
 */
export function envFile(chosen: Readonly<Record<string, string>>): string {
  const groups = inGroups(namedVariables).map(([title, variables]) =>
    [`# --- ${title}`, ...variables.map((variable) => entry(variable, chosen[variable.name]))].join('\n\n'),
  )
  const file = `${HEADER}\n${groups.join('\n\n')}\n`
  const read = parseEnv(file)
  const lost = Object.keys(chosen).find((name) => read[name] !== chosen[name])
  if (lost === undefined) return file
  throw new Refusal(
    'usage',
    `${lost} has a value that no env file can hold; leave quotes and line ends out of it`,
  )
}

function entry({ name, meaning, standard, unset }: NamedVariable, value: string | undefined): string {
  const otherwise = standard === null && unset !== undefined ? ` (not set: ${unset})` : ''
  const line = value === undefined ? `#${name}=${standard ?? ''}` : `${name}=${quoted(value)}`
  return `# ${`${meaning}${otherwise}`.replaceAll('`', '')}\n${line}`
}

/** Env files know no escapes: a value is put between quotes it does not hold itself. */
function quoted(value: string): string {
  if (/^[\w.:/@%+=,?&~-]+$/.test(value)) return value
  const quote = ["'", '"', '`'].find((each) => !value.includes(each)) ?? "'"
  return `${quote}${value}${quote}`
}

/** Values a person chose, by the names of variables. */
export type ChosenSettings = Record<string, string>

/** What runs an installation, and is printed for it. */
export type OutputKind = 'systemd' | 'cron' | 'containers' | 'nothing'

/** Asks on one stream, and ends for good when the person or a signal does. */
export interface PromptContext {
  output: NodeJS.WriteStream
  signal: AbortSignal
}

/** The person left a question without an answer. */
class Cancelled extends Error {}

/**
 * Asks a person what no flag said. Every question has a default, and every answer is held to the rule of its variable.
 *
 * @param known what flags said; it is not asked again
 * @returns null when the person gave up
 */
export async function promptForSettings(
  known: ChosenSettings,
  dataDir: string,
  prompts: PromptContext,
): Promise<ChosenSettings | null> {
  const choices = { ...known }
  try {
    await promptFor('DASH_DATA_DIR', choices, prompts, dataDir)
    await promptFor('DASH_BASE_URL', choices, prompts)
    if (choices['DASH_CHAT_MODEL'] === undefined) await promptForChat(choices, prompts)
    await promptFor('OPENROUTER_API_KEY', choices, prompts)
    return choices
  } catch (error) {
    if (error instanceof Cancelled) return null
    throw error
  }
}

/** @returns null when the person gave up */
export async function promptForOutputs(prompts: PromptContext): Promise<OutputKind | null> {
  const answer = await select<OutputKind>({
    message: 'What shall be printed to run it?',
    options: [
      { value: 'systemd', label: 'systemd units' },
      { value: 'cron', label: 'lines of a crontab' },
      { value: 'containers', label: 'how to run it in containers' },
      { value: 'nothing', label: 'nothing' },
    ],
    ...prompts,
  })
  return isCancel(answer) ? null : answer
}

async function promptForChat(choices: ChosenSettings, prompts: PromptContext): Promise<void> {
  const kind = await select({
    message: 'Which model shall the chat run on?',
    options: [
      { value: 'none', label: 'none: no chat for now' },
      { value: 'auto', label: 'the recommended free one', hint: 'needs a key of the model-routing service' },
      { value: 'own', label: 'one of a provider of your own' },
    ],
    ...prompts,
  })
  if (isCancel(kind)) throw new Cancelled()
  if (kind === 'auto') choices['DASH_CHAT_MODEL'] = 'auto'
  if (kind !== 'own') return
  await promptFor('OPENAI_BASE_URL', choices, prompts)
  await promptFor('DASH_CHAT_MODEL', choices, prompts)
  await promptFor('OPENAI_API_KEY', choices, prompts)
  // A guessed price would let the budget be overrun: without one the chat stays off.
  await promptFor('DASH_CHAT_PRICE_INPUT', choices, prompts)
  if (choices['DASH_CHAT_PRICE_INPUT'] !== undefined)
    await promptFor('DASH_CHAT_PRICE_OUTPUT', choices, prompts)
}

/** Asks the question of a variable, a secret without showing the answer. */
async function promptFor(
  name: VariableName,
  choices: ChosenSettings,
  prompts: PromptContext,
  suggested?: string,
): Promise<void> {
  const variable = namedVariables.find((each) => each.name === name)
  if (variable === undefined || choices[name] !== undefined) return
  const { question: message = name, suggestion, standard } = variable
  const initialValue = suggestion ?? suggested ?? standard ?? ''
  const validate = (value: string | undefined): string | undefined => {
    return value ? VARIABLES[name].rule.safeParse(value).error?.issues[0]?.message : undefined
  }
  const answer = variable.secret
    ? await password({ message, mask: '*', validate, ...prompts })
    : await text({ message, initialValue, validate, ...prompts })
  if (isCancel(answer)) throw new Cancelled()
  if (answer) choices[name] = answer
}
