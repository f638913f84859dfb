import { CHAT_VARIABLES } from './chat-variables.ts'
import { MONITORING_VARIABLES } from './monitoring-variables.ts'
import { SERVER_VARIABLES } from './server-variables.ts'
import { SOURCE_VARIABLES } from './source-variables.ts'
import { STORE_VARIABLES } from './store-variables.ts'
import { GROUPS } from './variable.ts'
import type { Variable } from './variable.ts'

/**
 * Every variable the program reads: the one place that knows its rule, its default and what it does. The rules of a
 * configuration, docs/configuration.md, `dash init` and `dash config` are all made from it.
 */
export const VARIABLES = {
  ...STORE_VARIABLES,
  ...SERVER_VARIABLES,
  ...SOURCE_VARIABLES,
  ...CHAT_VARIABLES,
  ...MONITORING_VARIABLES,
} as const

type VariableName = keyof typeof VARIABLES

/** A variable and its name. */
export interface NamedVariable extends Variable {
  name: VariableName
}

/** Every variable, in the order of its group. */
export const namedVariables: readonly NamedVariable[] = Object.keys(GROUPS).flatMap((group) =>
  Object.entries<Variable>(VARIABLES)
    .filter(([, variable]) => variable.group === group)
    .map(([name, variable]) => ({ ...variable, name: name as VariableName })),
)
