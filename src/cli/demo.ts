import type { Config } from './config.ts'
import type { CommandContext } from './program.ts'

export async function openDemo(_context: CommandContext): Promise<{ config: Config; close: () => Promise<void> }> {
  throw new Error('not built')
}
