/**
 * `npm run build`: compiles `src` to `dist`, bundles the program there, and the scripts of its pages to `dist-page`.
 *
 * A build of unchanged sources does nothing. A new build replaces the old one only when it is complete, so that programs
 * that run from `dist` never see a part of it, nor a file whose source was removed.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundle } from './bundle.mjs'
import { PAGE_FOLDER, bundlePage } from './page.mjs'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const DIST = join(ROOT, 'dist')
/** Digest of all inputs of a build, written when it is complete. */
const STAMP = join(DIST, '.built')

const digest = digestOfInputs()
if (existsSync(STAMP) && existsSync(PAGE_FOLDER) && readFileSync(STAMP, 'utf8') === digest) process.exit()

const [next, old] = [`${DIST}-next-${process.pid}`, `${DIST}-old-${process.pid}`]
try {
  const compiler = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')
  const options = ['-p', 'tsconfig.build.json', '--outDir', next]
  execFileSync(process.execPath, [compiler, ...options], { cwd: ROOT, stdio: 'inherit' })
  await bundle(next, await bundlePage())
  // npm makes the file executable only when it links the program; later builds must do it themselves.
  chmodSync(join(next, 'cli', 'main.js'), 0o755)
  writeFileSync(join(next, '.built'), digest)
  if (existsSync(DIST)) renameSync(DIST, old)
  renameSync(next, DIST)
} catch (error) {
  // The compiler has printed its errors; report any other error here.
  if (error.status === undefined) throw error
  process.exitCode = 1
} finally {
  for (const folder of [next, old]) rmSync(folder, { recursive: true, force: true })
}

function digestOfInputs() {
  const folders = ['src', join('scripts', 'build')]
  const files = folders.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name)),
  )
  const others = ['package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.build.json']
  const hash = createHash('sha256')
  for (const file of [...files.sort(), ...others.map((name) => join(ROOT, name))]) {
    hash
      .update(`${file.slice(ROOT.length)}\0`)
      .update(readFileSync(file))
      .update('\0')
  }
  return hash.digest('hex')
}
