/** Content by path: relative, with `/`. A map, because a model chooses names like `__proto__`. */
export type ShellFiles = ReadonlyMap<string, string>

export interface ShellLimits {
  /** Wall time of one command, and the time that its `sleep`s may add up to. */
  timeMs: number
  /** Standard output and standard error together, and the files it leaves. */
  outputBytes: number
}

/**
 * How a command ended. `not-executable`: no shell would run it (syntax, or a command that exists nowhere).
 * `unsupported`: a real shell might have run it, the sandbox cannot.
 */
export type ShellOutcome = 'ran' | 'not-executable' | 'unsupported' | 'timeout' | 'too-much-output'

export interface ShellRun {
  outcome: ShellOutcome
  /** Empty unless `ran`. */
  stdout: string
  stderr: string
  /** null unless `ran`. */
  exitCode: number | null
  /** Every regular file below the working folder afterwards; empty unless `ran`. */
  files: ShellFiles
  /** What the sandbox could not do or would not allow, in one line; null when `ran`. */
  why: string | null
  /** Real tools that the command called and the sandbox does not have. */
  missingTools: readonly string[]
}
