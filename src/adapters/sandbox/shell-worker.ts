import { parentPort } from 'node:worker_threads'
import type { ShellFiles, ShellLimits } from '../../domain/models/lite/shell.ts'
import { runCommand } from './run-command.ts'

/** One command for the thread. */
export interface SandboxRequest {
  command: string
  files: ShellFiles
  limits: ShellLimits
}

// The answer is a ShellRun; what is thrown ends the thread, and whoever waits for the answer sees that.
parentPort?.on('message', ({ command, files, limits }: SandboxRequest) => {
  void runCommand(command, files, limits).then((run) => parentPort?.postMessage(run))
})
parentPort?.postMessage('ready')
