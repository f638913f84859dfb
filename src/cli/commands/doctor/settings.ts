import { isLoopbackUrl } from '../../../domain/agent/budget.ts'
import { chatGaps, chatWarnings } from '../../chat-start.ts'
import type { Config } from '../../config.ts'
import type { ExaminedSettings } from '../../environment.ts'
import { EXIT } from '../../exit-codes.ts'
import type { GivenSettings } from '../../read-config.ts'
import { namedVariables } from '../../settings/variables.ts'
import { note, ok, problem, warning } from './finding.ts'
import type { Finding } from './finding.ts'

/** What the configuration is worth by itself. */
export function checkSettings(given: GivenSettings, examined: ExaminedSettings): Finding[] {
  const from = given.dotenv === null ? 'no env file is read' : `the env file ${given.dotenv} is read`
  const wrong = examined.problems.map(({ message }) =>
    problem(
      'configuration',
      message,
      'correct it; dash config tells where each value comes from',
      EXIT.configuration,
    ),
  )
  const unknown = unknownNames(given).map((name) =>
    warning(
      'configuration.names',
      `${name} is set, but no variable has that name`,
      'correct or remove it; dash config lists all names',
    ),
  )
  return wrong.length > 0
    ? [...wrong, ...unknown]
    : [ok('configuration', `every value is sound; ${from}`), ...unknown]
}

/** Names that are meant for the program, and that it does not know. */
function unknownNames({ values }: GivenSettings): string[] {
  const known = new Set(
    namedVariables.flatMap(({ name, secret }) => (secret ? [name as string, `${name}_FILE`] : [name])),
  )
  return Object.keys(values).filter((name) => name.startsWith('DASH_') && !known.has(name))
}

/** What is off, and by which setting. */
export function checkFeatures(config: Config): Finding[] {
  const gaps = chatGaps(config)
  const { provider } = config.chat
  const warnings = gaps.length === 0 ? chatWarnings(config) : []
  const bare = [
    ['OPENAI_BASE_URL', provider.url, provider.key],
    ['OPENROUTER_BASE_URL', config.openRouterUrl, config.openRouterKey],
  ] as const
  return [
    gaps.length === 0
      ? ok('chat', `the chat is on, with the model ${provider.model}`)
      : note('chat', 'the chat is off', chatMend(gaps)),
    ...warnings.map((each) => warning(each.check, each.problem, each.mend)),
    ...bare.flatMap(([name, url, key]) =>
      key !== null && url.startsWith('http:') && !isLoopbackUrl(url)
        ? [
            warning(
              'secrets.transport',
              `${name} is no https: URL: the key is sent where others can read it`,
              `use https in ${name}`,
            ),
          ]
        : [],
    ),
  ]
}

function chatMend(gaps: readonly string[]): string {
  return gaps.includes('DASH_CHAT_DISABLED')
    ? 'to switch it on, remove DASH_CHAT_DISABLED'
    : `to switch it on, set ${gaps.join(', ')}`
}
