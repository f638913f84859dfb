import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { examplesOf, isRun } from './examples.ts'

export interface Said {
  code: number | null
  /** Standard output and standard error, as they came. */
  lines: string[]
}

/** The shell blocks of a page of the documents that a test can run, in their order. */
export function shellBlocks(page: string): string[] {
  return examplesOf(page)
    .filter((example) => example.language === 'sh' && isRun(example))
    .map(({ text }) => text)
}

/** What a person's shell says: nothing but the script, a folder of its own and the usual tools. */
export async function shell(script: string, folder: string, env: Record<string, string> = {}): Promise<Said> {
  const child = spawn('/bin/sh', ['-s'], { cwd: folder, env: { PATH: process.env['PATH'] ?? '', ...env } })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  }
  child.stdin.end(script)
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, lines: output.trimEnd().split('\n') }
}
