import type { ShellFiles, ShellLimits } from '../../domain/models/lite/suite.ts'
import { runCommand } from './run-command.ts'

/** One command for the process. */
export interface SandboxRequest {
  command: string
  files: ShellFiles
  limits: ShellLimits
}

// The answer is a ShellRun; what is thrown ends the process, and whoever waits for the answer sees that.
process.on('message', ({ command, files, limits }: SandboxRequest) => {
  void runCommand(command, files, limits).then((run) => process.send?.(run))
})
process.send?.('ready')
