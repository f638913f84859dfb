import type { ShellFiles, ShellLimits } from '../../domain/models/lite/suite.ts'
import { runCommand } from './run-command.ts'

/** A command for the process to run. */
export interface SandboxRequest {
  command: string
  files: ShellFiles
  limits: ShellLimits
}

// The response is a ShellRun. An exception ends the process, which its parent notices.
process.on('message', ({ command, files, limits }: SandboxRequest) => {
  void runCommand(command, files, limits).then((run) => process.send?.(run))
})
process.send?.('ready')
