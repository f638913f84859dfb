import type { Command } from 'commander'
import type { BareContext } from '../context.ts'
import { EXIT } from '../exit-codes.ts'
import { bashCompletion } from './bash.ts'
import { commandTree } from './command-tree.ts'
import { fishCompletion } from './fish.ts'
import { zshCompletion } from './zsh.ts'

const SHELLS = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion }

export type Shell = keyof typeof SHELLS

/** The names the package gives the program. */
const NAMES = ['dash', 'dashctl']

/** `dash completion`: what a shell loads to complete this program's command lines, made from its own description. */
export async function completionCommand(
  { terminal }: BareContext,
  program: Command,
  shell: Shell,
): Promise<number> {
  const script = SHELLS[shell](commandTree(program), NAMES)
  terminal.result({ shell, script }, script.trimEnd())
  return EXIT.done
}
