import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'

const SOURCE = fileURLToPath(new URL('check-log.go', import.meta.url))

/** Where Debian and Ubuntu install Go packages. */
const GOPATH = '/usr/share/gocode'

/** The built Go program. It reads from a server of this process, so that it must not block the process. */
export interface CheckLog {
  /** Runs the program, which must accept the log, and returns its lines. */
  accept(args: readonly string[]): Promise<string[]>
  /** Runs the program, which must find a failure, and returns its reason. */
  refuse(args: readonly string[]): Promise<string>
  remove(): void
}

/**
 * Builds the program of check-log.go, which checks a log with Go's own packages.
 *
 * @throws Error if Go or its package is not installed
 */
export function buildCheckLog(): CheckLog {
  if (spawnSync('go', ['version']).error || !existsSync(join(GOPATH, 'src/golang.org/x/mod/sumdb/tlog')))
    throw new Error('Go is missing; install it: apt-get install golang-go golang-golang-x-mod-dev')
  const folder = mkdtempSync(join(tmpdir(), 'dash-check-log-'))
  const program = join(folder, 'check-log')
  execFileSync('go', ['build', '-o', program, SOURCE], {
    env: {
      ...process.env,
      GO111MODULE: 'off',
      GOPATH,
      GOCACHE: process.env['GOCACHE'] ?? join(folder, 'cache'),
    },
  })
  return {
    accept: async (args) => {
      const { code, stdout, stderr } = await runProgram(program, args)
      expect([code, stderr]).toEqual([0, ''])
      return stdout.trimEnd().split('\n')
    },
    refuse: async (args) => {
      const { code, stderr } = await runProgram(program, args)
      expect([code, stderr]).toEqual([1, expect.stringMatching(/^failed /)])
      return stderr.trimEnd()
    },
    remove: () => rmSync(folder, { recursive: true }),
  }
}

function runProgram(
  program: string,
  args: readonly string[],
): Promise<{ code: string | number | null | undefined; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(program, args, (error, stdout, stderr) =>
      resolve({ code: error ? error.code : 0, stdout, stderr }),
    )
  })
}
