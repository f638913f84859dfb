import { pathToFileURL } from 'node:url'
import { Refusal } from '../../domain/refusal.ts'
import { configOf, listeningUrl } from '../settings/config.ts'
import { examineEnvironment, NOT_SHOWN, withoutSecrets } from '../settings/environment.ts'
import type { ExaminedSettings } from '../settings/environment.ts'
import { EXIT } from '../exit-codes.ts'
import type { BareContext } from '../context.ts'
import { gatherSettings } from '../settings/read-config.ts'
import type { GivenSettings } from '../settings/read-config.ts'
import { GROUPS } from '../settings/rules.ts'
import { namedVariables } from '../settings/variables.ts'
import type { NamedVariable } from '../settings/variables.ts'
import { escaped } from '../terminal.ts'

type Source = 'flag' | 'environment' | 'env-file' | 'secret-file' | 'default'

/** One setting as it is shown. */
interface ShownSetting {
  name: string
  group: string
  /** null: nothing is set and nothing follows from other settings. */
  value: string | null
  source: Source
  /** The flag, the env file or the secret file. */
  from: string | null
  secret: boolean
  meaning: string
}

/**
 * `dash config`: every setting with its value and where that comes from. Secrets are never shown, nor how long they are.
 *
 * @param names settings to show; none: all
 * @returns 0, or 78 when a value is wrong: what is wrong is then told for all of them
 * @throws Refusal `usage` for a name that is no setting
 */
export async function configCommand(context: BareContext, names: readonly string[]): Promise<number> {
  const { terminal, flags, env, cwd } = context
  const known = new Set(namedVariables.map(({ name }) => name as string))
  const unknown = names.find((name) => !known.has(name))
  if (unknown !== undefined) {
    throw new Refusal(
      'usage',
      `${JSON.stringify(unknown)} is no setting; dash config without a name lists them all`,
    )
  }
  const given = gatherSettings(flags, env, cwd)
  const examined = examineEnvironment(given.values, cwd)
  const derived = derivedValues(examined, cwd)
  const settings = namedVariables
    .filter(({ name }) => names.length === 0 || names.includes(name))
    .map((variable) => shown(variable, given, examined, derived))
  const problems = examined.problems.map(({ message }) => message)
  terminal.result({ dotenv: given.dotenv, settings, problems }, inGroups(settings))
  for (const problem of problems) terminal.error(problem)
  return problems.length === 0 ? EXIT.done : EXIT.configuration
}

function shown(
  variable: NamedVariable,
  { values, originOf, dotenv }: GivenSettings,
  examined: ExaminedSettings,
  derived: Readonly<Record<string, string>>,
): ShownSetting {
  const { name, group, standard, secret = false, meaning, flag = null } = variable
  const about = { name, group: GROUPS[group], secret, meaning }
  const file = values[`${name}_FILE`]
  if (secret && file && !values[name]) {
    const value = examined.values[name] === undefined ? null : NOT_SHOWN
    return { ...about, value, source: 'secret-file', from: file }
  }
  const value = values[name]
  const source = originOf(name)
  if (value && source !== null) {
    const from = { flag, environment: null, 'env-file': dotenv }[source]
    return { ...about, value: secret ? NOT_SHOWN : withoutSecrets(value), source, from }
  }
  return { ...about, value: standard ?? derived[name] ?? null, source: 'default', from: null }
}

/** What follows for settings that are not set, by their names; nothing while something is wrong. */
function derivedValues({ settings }: ExaminedSettings, cwd: string): Record<string, string> {
  if (settings === null) return {}
  const config = configOf(settings, cwd)
  const { prices } = config.chat.provider
  return {
    DASH_DATA_DIR: config.dataDir,
    DASH_LEDGER_URL: withoutSecrets(config.ledger.url),
    DASH_FEED_URL: withoutSecrets(config.feed.url),
    DASH_STATE_URL: withoutSecrets(config.state.url),
    ...(config.store.kind === 'file' ? { DASH_STORE_URL: pathToFileURL(config.store.path).href } : {}),
    DASH_BASE_URL: listeningUrl(config.host, config.port),
    ...(prices ? { DASH_CHAT_PRICE_CACHED: String(prices.cached / 1_000_000) } : {}),
    XDG_STATE_HOME: config.stateHome,
  }
}

function inGroups(settings: readonly ShownSetting[]): string {
  const widthOf = (cell: (setting: ShownSetting) => string): number =>
    Math.max(...settings.map((setting) => cell(setting).length))
  const valueOf = ({ value }: ShownSetting): string => escaped(value ?? '-')
  const names = widthOf(({ name }) => name)
  const values = Math.min(widthOf(valueOf), VALUE_COLUMNS)
  return [...new Set(settings.map(({ group }) => group))]
    .map((group) => {
      const rows = settings
        .filter((setting) => setting.group === group)
        .map((setting) => {
          const { name, source, from } = setting
          const origin = `${source.replace('-', ' ')}${from === null ? '' : ` ${escaped(from)}`}`
          return `  ${name.padEnd(names)}  ${valueOf(setting).padEnd(values)}  ${origin}`
        })
      return [group, ...rows].join('\n')
    })
    .join('\n')
}

/** A longer value pushes its source to the right. */
const VALUE_COLUMNS = 44
