import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const SOURCES = join(ROOT, 'src', 'server', 'page', 'browser')

/** Where the server finds the scripts of its pages, whether it runs from `dist` or from `src`. */
export const PAGE_FOLDER = join(ROOT, 'dist-page')

/** Scripts that pages name, and the renderer of answers, which is loaded with the first question. */
const ENTRIES = ['page', 'theme', 'chat/chat-markdown']

/**
 * Bundles the scripts of the pages. Only changed files are written, each atomically, so that a server can read the folder
 * at the same time; those of earlier builds are deleted.
 *
 * @returns the bundled modules
 */
export async function bundlePage() {
  const page = await rolldown({
    input: Object.fromEntries(ENTRIES.map((name) => [name.replace(/.*\//, ''), join(SOURCES, `${name}.ts`)])),
    platform: 'browser',
    // Modules of the domain that are imported for a function have schemas, which no page needs.
    treeshake: { moduleSideEffects: false },
  })
  const { output } = await page.generate({
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    minify: true,
  })
  await page.close()
  mkdirSync(PAGE_FOLDER, { recursive: true })
  for (const { fileName, code } of output) {
    const path = join(PAGE_FOLDER, fileName)
    if (existsSync(path) && readFileSync(path, 'utf8') === code) continue
    writeFileSync(`${path}-${process.pid}`, code)
    renameSync(`${path}-${process.pid}`, path)
  }
  const built = new Set(output.map(({ fileName }) => fileName))
  const others = readdirSync(PAGE_FOLDER).filter((name) => name.endsWith('.js') && !built.has(name))
  for (const name of others) rmSync(join(PAGE_FOLDER, name), { force: true })
  return output.flatMap(({ moduleIds }) => moduleIds)
}
