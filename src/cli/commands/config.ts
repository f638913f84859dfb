import { pathToFileURL } from 'node:url'
import { Refusal } from '../../domain/refusal.ts'
import { configOf, listeningUrl } from '../settings/config.ts'
import type { Config } from '../settings/config.ts'
import { examineEnvironment, NOT_SHOWN, withoutSecrets } from '../settings/environment.ts'
import { EXIT } from '../exit-codes.ts'
import type { BareContext } from '../context.ts'
import { gatherSettings, noteUnknownSettings } from '../settings/read-config.ts'
import type { GivenSettings } from '../settings/read-config.ts'
import { inGroups, namedVariables } from '../settings/variables.ts'
import type { NamedVariable } from '../settings/variables.ts'
import { escaped } from '../terminal.ts'

interface ShownSetting {
  name: string
  group: string
  secret: boolean
  meaning: string
  /** null: neither set nor derived from other settings. */
  value: string | null
  source: 'flag' | 'environment' | 'env-file' | 'secret-file' | 'default'
  /** Flag, env file or secret file that holds the value. */
  from: string | null
}

/** `dash config`. Secrets and their lengths are never shown; all invalid values are reported. */
export async function configCommand(
  context: BareContext,
  _flags: object,
  names: readonly string[],
): Promise<number> {
  const { terminal, cwd } = context
  const unknown = names.find((name) => !namedVariables.some((variable) => variable.name === name))
  if (unknown !== undefined) {
    const advice = 'dash config lists all settings'
    throw new Refusal('usage', `unknown setting ${JSON.stringify(unknown)}; ${advice}`)
  }
  const given = gatherSettings(context)
  noteUnknownSettings(given.values, terminal)
  const examined = examineEnvironment(given.values, cwd, given.originOf)
  const problems = examined.problems.map(({ message }) => message)
  const derived = examined.settings === null ? {} : derivedValues(configOf(examined.settings, cwd))
  const settings = namedVariables
    .filter(({ name }) => names.length === 0 || names.includes(name))
    .map((variable) => ({
      name: variable.name,
      group: variable.group,
      secret: variable.secret ?? false,
      meaning: variable.meaning,
      ...shownValue(variable, given, examined.values[variable.name], derived),
    }))
  terminal.result({ dotenv: given.dotenv, settings, problems }, printed(settings))
  for (const problem of problems) terminal.error(problem)
  return problems.length === 0 ? EXIT.done : EXIT.configuration
}

/** @param examined value of the setting, from its secret file if it has one */
function shownValue(
  { name, standard, secret }: NamedVariable,
  { values, originOf }: GivenSettings,
  examined: string | undefined,
  derived: Readonly<Record<string, string>>,
): Pick<ShownSetting, 'value' | 'source' | 'from'> {
  const [value, file] = [values[name], values[`${name}_FILE`]]
  if (secret && file && !value)
    return { value: examined === undefined ? null : NOT_SHOWN, source: 'secret-file', from: file }
  if (!value) return { value: standard ?? derived[name] ?? null, source: 'default', from: null }
  const { flag, file: dotenv } = originOf(name)
  const source = flag !== null ? 'flag' : dotenv !== null ? 'env-file' : 'environment'
  return { value: secret ? NOT_SHOWN : withoutSecrets(value), source, from: flag ?? dotenv }
}

/** Values of unset settings that derive from others. */
function derivedValues(config: Config): Record<string, string> {
  const { prices } = config.chat.provider
  return {
    DASH_DATA_DIR: config.dataDir,
    DASH_LEDGER_URL: withoutSecrets(config.ledger.url),
    DASH_FEED_URL: withoutSecrets(config.feed.url),
    DASH_STATE_URL: withoutSecrets(config.state.url),
    ...(config.store.kind === 'file' ? { DASH_STORE_URL: pathToFileURL(config.store.path).href } : {}),
    DASH_BASE_URL: listeningUrl(config),
    ...(config.log.origin === null ? {} : { DASH_LOG_ORIGIN: config.log.origin }),
    ...(prices ? { DASH_CHAT_PRICE_CACHED: String(prices.cached / 1_000_000) } : {}),
    XDG_STATE_HOME: config.stateHome,
  }
}

/** Width of the value column; a longer value pushes its origin to the right. */
const VALUE_COLUMNS = 44

function printed(settings: readonly ShownSetting[]): string {
  const rows = settings.map(({ group, name, value, source, from }) => ({
    group,
    name,
    value: escaped(value ?? '-'),
    origin: `${source.replace('-', ' ')}${from === null ? '' : ` ${escaped(from)}`}`,
  }))
  const names = Math.max(...rows.map(({ name }) => name.length))
  const values = Math.min(Math.max(...rows.map(({ value }) => value.length)), VALUE_COLUMNS)
  return inGroups(rows)
    .map(([title, members]) =>
      [
        title,
        ...members.map(
          ({ name, value, origin }) => `  ${name.padEnd(names)}  ${value.padEnd(values)}  ${origin}`,
        ),
      ].join('\n'),
    )
    .join('\n')
}
