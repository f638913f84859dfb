import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { logStream } from '../../src/cli/server-log.ts'
import { temporaryFolder } from '../support/dash.ts'

function open(path: string): number {
  const descriptor = openSync(path, 'w')
  onTestFinished(() => closeSync(descriptor))
  return descriptor
}

test('lines are written whole and in order, and all of them by the end', async () => {
  const path = join(temporaryFolder(), 'log')
  const stream = logStream(open(path))
  const lines = Array.from({ length: 500 }, (_, index) => `line ${index} é\n`)
  for (const line of lines) stream.write(line)
  await stream.flush(10_000)
  expect(readFileSync(path, 'utf8')).toBe(lines.join(''))
})

test('a disk without room costs the lines and nothing else', async () => {
  const stream = logStream(open('/dev/full'))
  for (let line = 0; line < 100; line += 1) stream.write('lost\n')
  const started = performance.now()
  await stream.flush(60_000)
  // It has ended because nothing waits any more, not because its time was over.
  expect(performance.now() - started).toBeLessThan(30_000)
})
