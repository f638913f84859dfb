import { runCommand } from './run-command.ts'
import type { SandboxRequest } from './shell.ts'

// The response is a ShellRun. An exception ends the process, which its parent notices.
process.on('message', ({ command, files, limits }: SandboxRequest) => {
  void runCommand(command, files, limits).then((run) => process.send?.(run))
})
process.send?.('ready')
