import { readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const MAIN = join(ROOT, 'src', 'cli', 'main.ts')

/** What every command waits for, or whatever opens a store. All other packages are loaded from where they are installed. */
const BUNDLED = new Set(['aws4fetch', 'commander', 'unstorage', 'zod'])

const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
const installed = Object.keys(dependencies).filter((name) => !BUNDLED.has(name))

/** A module goes by the address it has outside the bundle: its workers, assets and migrations stand beside that one. */
const ownAddress = {
  name: 'own-address',
  transform: {
    filter: { id: /\/src\/.*\.ts$/, code: 'import.meta.url' },
    handler(code, id) {
      const compiled = relative(join(ROOT, 'src'), id).replace(/\.ts$/, '.js')
      const address = `new URL('../${compiled}', import.meta.url).href`
      // The lines stay as they are, and the source map with them.
      return { code: code.replaceAll('import.meta.url', address), map: null }
    },
  },
}

/**
 * What the program loads before it knows its command goes into one file; without its first module, which waits for the
 * command, and for which no other file may wait in turn.
 */
function neededByAll(id, graph) {
  const needed = new Set([MAIN])
  for (const module of needed)
    for (const imported of graph.getModuleInfo(module)?.importedIds ?? []) needed.add(imported)
  return id !== MAIN && needed.has(id) ? 'program' : null
}

/**
 * Bundles the program (docs/decisions/0042-a-bundled-program.md): `cli/main.js`, which the compiler has written, is
 * replaced by one that loads a few files of `chunks` instead of some hundred modules. The other modules stay where they
 * are: worker threads and children are started from them.
 *
 * @param {string} folder what the compiler has written
 */
export async function bundle(folder) {
  const program = await rolldown({
    input: MAIN,
    platform: 'node',
    external: installed.map((name) => new RegExp(`^${name}(?:/|$)`)),
    plugins: [ownAddress],
  })
  const { output } = await program.write({
    dir: folder,
    entryFileNames: 'cli/[name].js',
    chunkFileNames: 'chunks/[name].js',
    codeSplitting: { groups: [{ debugName: 'program', name: neededByAll }] },
    sourcemap: true,
    sourcemapExcludeSources: true,
  })
  await program.close()

  const modules = output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []))
  const packages = modules.flatMap((id) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(id)?.[1] ?? [])
  const licences = [...new Set(packages)].sort().map((name) => {
    const home = join(ROOT, 'node_modules', name)
    const { version } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'))
    return `${name} ${version}\n\n${readFileSync(join(home, 'LICENSE'), 'utf8').trim()}\n`
  })
  writeFileSync(join(folder, 'chunks', 'LICENSES.txt'), licences.join('\n---\n\n'))
}
