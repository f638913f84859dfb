import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { temporaryFolder } from './support/dash.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

test('the image is built only from files that the Dockerfile copies before the build', () => {
  const [before = '', rest] = readFileSync(join(ROOT, 'Dockerfile'), 'utf8').split(/^RUN npm run build\b.*$/m)
  expect(rest).toBeDefined()
  const folder = join(temporaryFolder(), 'build')
  mkdirSync(folder)
  for (const [, line = ''] of before.matchAll(/^COPY (.+)$/gm)) {
    const args = line.split(/\s+/)
    const target = join(folder, args.at(-1) ?? '')
    // The target is a folder if it ends with a slash, else a file name.
    for (const name of args.slice(0, -1))
      cpSync(join(ROOT, name), line.endsWith('/') ? join(target, name) : target, { recursive: true })
  }
  // The dependencies that `npm ci` installs.
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  execFileSync('npm', ['run', 'build'], { cwd: folder, stdio: 'pipe' })
  expect(existsSync(join(folder, 'dist', 'cli', 'main.js'))).toBe(true)
})
