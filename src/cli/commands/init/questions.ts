import { isCancel, password, select, text } from '@clack/prompts'
import { VARIABLES } from '../../settings/variables.ts'

/** What a person chose, by the names of variables. */
export type Choices = Record<string, string>

/** What runs an installation, and is printed for it. */
export type Printed = 'systemd' | 'cron' | 'containers' | 'nothing'

type Name = keyof typeof VARIABLES

/** Asks on one stream, and ends for good when the person or a signal does. */
export interface Asking {
  output: NodeJS.WriteStream
  signal: AbortSignal
}

/**
 * Asks a person what no flag said. Every question has a default, and every answer is held to the rule of its variable.
 *
 * @param known what flags said; it is not asked again
 * @returns null when the person gave up
 */
export async function askSettings(known: Choices, dataDir: string, asking: Asking): Promise<Choices | null> {
  const choices = { ...known }
  try {
    await ask(choices, 'DASH_DATA_DIR', 'Folder for everything that is stored?', asking, dataDir)
    await ask(choices, 'DASH_BASE_URL', 'Address it is reached at from outside? (empty: only here)', asking)
    if (choices['DASH_CHAT_MODEL'] === undefined) await askChat(choices, asking)
    await askSecret(choices, 'OPENROUTER_API_KEY', 'Key of the model-routing service? (empty: none)', asking)
    return choices
  } catch (error) {
    if (error instanceof GaveUp) return null
    throw error
  }
}

/** @returns null when the person gave up */
export async function askPrinted(asking: Asking): Promise<Printed | null> {
  const what = await select<Printed>({
    message: 'What shall be printed to run it?',
    options: [
      { value: 'systemd', label: 'systemd units' },
      { value: 'cron', label: 'lines of a crontab' },
      { value: 'containers', label: 'how to run it in containers' },
      { value: 'nothing', label: 'nothing' },
    ],
    ...asking,
  })
  return isCancel(what) ? null : what
}

async function askChat(choices: Choices, asking: Asking): Promise<void> {
  const kind = await select({
    message: 'Which model shall the chat run on?',
    options: [
      { value: 'none', label: 'none: no chat for now' },
      { value: 'auto', label: 'the recommended free one', hint: 'needs a key of the model-routing service' },
      { value: 'own', label: 'one of a provider of your own' },
    ],
    ...asking,
  })
  if (isCancel(kind)) throw new GaveUp()
  if (kind === 'auto') choices['DASH_CHAT_MODEL'] = 'auto'
  if (kind !== 'own') return
  await ask(
    choices,
    'OPENAI_BASE_URL',
    'API base of the provider?',
    asking,
    VARIABLES.OPENAI_BASE_URL.standard ?? '',
  )
  await ask(choices, 'DASH_CHAT_MODEL', 'Model?', asking)
  await askSecret(choices, 'OPENAI_API_KEY', 'Key of the provider? (empty: none)', asking)
  // A guessed price would let the budget be overrun: without one the chat stays off.
  await ask(
    choices,
    'DASH_CHAT_PRICE_INPUT',
    'US dollars per million tokens read? (empty: to be set later)',
    asking,
  )
  if (choices['DASH_CHAT_PRICE_INPUT'] === undefined) return
  await ask(choices, 'DASH_CHAT_PRICE_OUTPUT', 'US dollars per million tokens written?', asking, '0')
}

async function ask(
  choices: Choices,
  name: Name,
  message: string,
  asking: Asking,
  initialValue = '',
): Promise<void> {
  if (choices[name] !== undefined) return
  const validate = (value: string | undefined): string | undefined => wrongWith(name, value)
  const value = await text({ message, initialValue, validate, ...asking })
  if (isCancel(value)) throw new GaveUp()
  if (value) choices[name] = value
}

async function askSecret(choices: Choices, name: Name, message: string, asking: Asking): Promise<void> {
  const validate = (value: string | undefined): string | undefined => wrongWith(name, value)
  const value = await password({ message, mask: '*', validate, ...asking })
  if (isCancel(value)) throw new GaveUp()
  if (value) choices[name] = value
}

function wrongWith(name: Name, value: string | undefined): string | undefined {
  if (!value) return undefined
  const parsed = VARIABLES[name].rule.safeParse(value)
  return parsed.success ? undefined : parsed.error.issues[0]?.message
}

/** The person left a question without an answer. */
class GaveUp extends Error {}
