import { execFileSync } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Files of the built program, with when each was written. */
const built = (): Map<string, number> =>
  new Map(
    readdirSync(join(ROOT, 'dist'), { recursive: true, encoding: 'utf8' }).map((name) => [
      name,
      statSync(join(ROOT, 'dist', name)).mtimeMs,
    ]),
  )

test('a build of unchanged sources writes nothing under a program that runs', () => {
  const before = built()
  expect(before.has('cli/main.js')).toBe(true)
  execFileSync('npm', ['run', 'build'], { cwd: ROOT, stdio: 'ignore' })
  expect(built()).toEqual(before)
})
