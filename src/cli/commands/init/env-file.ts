import { isCancel, password, select, text } from '@clack/prompts'
import { Refusal } from '../../../domain/refusal.ts'
import { parseDotenv } from '../../settings/dotenv.ts'
import { VARIABLES, inGroups, namedVariables } from '../../settings/variables.ts'
import type { Variable } from '../../settings/rules.ts'
import type { NamedVariable, VariableName } from '../../settings/variables.ts'

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
  const line = value === undefined ? `#${name}=${standard ?? ''}` : `${name}=${quoted(name, value)}`
  return `# ${`${meaning}${otherwise}`.replaceAll('`', '')}\n${line}`
}

/**
 * Quotes a value with a quotation mark that it does not contain, because env files know no escapes.
 *
 * @throws Refusal `usage` if it contains all of them
 */
function quoted(name: string, value: string): string {
  if (/^[\w.:/@%+=,?&~-]+$/.test(value)) return value
  const quote = ["'", '`', '"'].find((each) => !value.includes(each))
  const written = `${quote}${value}${quote}`
  if (quote !== undefined && parseDotenv(Buffer.from(`${name}=${written}`), '')[name] === value)
    return written
  throw new Refusal('usage', `the value of ${name} does not fit into an env file; remove its quotes`)
}

export type ChosenSettings = Record<string, string>

/** Form in which `dash init` prints how to run an installation. */
export type OutputKind = 'systemd' | 'cron' | 'containers' | 'nothing'

/** Output stream of prompts, and the signal that cancels them. */
export interface PromptContext {
  output: NodeJS.WriteStream
  signal: AbortSignal
}

/** Thrown when the user cancels a prompt. */
export class Cancelled extends Error {}

/**
 * Prompts for settings that no flag gave. Every prompt has a default, and every value is checked by the rule of its
 * variable.
 *
 * @param known settings from flags, for which there is no prompt
 * @throws Cancelled
 */
export async function promptForSettings(
  known: ChosenSettings,
  dataDir: string,
  prompts: PromptContext,
): Promise<ChosenSettings> {
  const choices = { ...known }
  await promptFor('DASH_DATA_DIR', choices, prompts, dataDir)
  await promptFor('HOST', choices, prompts)
  await promptFor('PORT', choices, prompts)
  await promptFor('DASH_BASE_URL', choices, prompts)
  // Without a public address there is no proxy in front.
  if (choices['DASH_BASE_URL'] !== undefined) await promptFor('DASH_TRUSTED_PROXIES', choices, prompts)
  if (choices['DASH_CHAT_MODEL'] === undefined) await promptForChat(choices, prompts)
  await promptFor('OPENROUTER_API_KEY', choices, prompts)
  return choices
}

/** @throws Cancelled */
export async function promptForOutputs(prompts: PromptContext): Promise<OutputKind> {
  const answer = await select<OutputKind>({
    message: 'How will you run dash?',
    options: [
      { value: 'systemd', label: 'systemd units' },
      { value: 'cron', label: 'cron lines' },
      { value: 'containers', label: 'containers (Docker Compose)' },
      { value: 'nothing', label: 'print nothing' },
    ],
    ...prompts,
  })
  return answered(answer)
}

/** Returns the answer to a prompt. @throws Cancelled */
function answered<T>(answer: T): Exclude<T, symbol> {
  if (isCancel(answer)) throw new Cancelled()
  return answer as Exclude<T, symbol>
}

async function promptForChat(choices: ChosenSettings, prompts: PromptContext): Promise<void> {
  const answer = await select({
    message: 'Which model should the chat use?',
    options: [
      { value: 'none', label: 'none, no chat for now' },
      { value: 'auto', label: 'the recommended free model', hint: 'needs an OpenRouter key' },
      { value: 'own', label: 'a model of your own provider' },
    ],
    ...prompts,
  })
  const kind = answered(answer)
  if (kind === 'auto') choices['DASH_CHAT_MODEL'] = 'auto'
  if (kind !== 'own') return
  await promptFor('OPENAI_BASE_URL', choices, prompts)
  await promptFor('DASH_CHAT_MODEL', choices, prompts)
  await promptFor('OPENAI_API_KEY', choices, prompts)
  // A guessed price could exceed the budget: the chat stays off without a price.
  await promptFor('DASH_CHAT_PRICE_INPUT', choices, prompts)
  if (choices['DASH_CHAT_PRICE_INPUT'] !== undefined)
    await promptFor('DASH_CHAT_PRICE_OUTPUT', choices, prompts)
}

/** Prompts for a variable; the value of a secret is not shown. */
async function promptFor(
  name: VariableName,
  choices: ChosenSettings,
  prompts: PromptContext,
  suggested?: string,
): Promise<void> {
  if (choices[name] !== undefined) return
  const { rule, secret, question: message = name, suggestion, standard }: Variable = VARIABLES[name]
  const initialValue = suggestion ?? suggested ?? standard ?? ''
  const validate = (value: string | undefined): string | undefined =>
    value ? rule.safeParse(value).error?.issues[0]?.message : undefined
  const answer = secret
    ? password({ message, mask: '*', validate, ...prompts })
    : text({ message, initialValue, validate, ...prompts })
  const value = answered(await answer)
  if (value) choices[name] = value
}
