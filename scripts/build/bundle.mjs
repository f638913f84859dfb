import { readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const MAIN = join(ROOT, 'src', 'cli', 'main.ts')

/** Packages in the bundle: every command or store needs them. All others are loaded from where they are installed. */
const BUNDLED = new Set(['aws4fetch', 'commander', 'unstorage', 'zod'])

const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
const installed = Object.keys(dependencies).filter((name) => !BUNDLED.has(name))

/** Keeps the address that a module has outside the bundle: its workers, assets and migrations are beside that one. */
const ownAddress = {
  name: 'own-address',
  transform: {
    filter: { id: /\/src\/.*\.ts$/, code: 'import.meta.url' },
    handler(code, id) {
      const compiled = relative(join(ROOT, 'src'), id).replace(/\.ts$/, '.js')
      const address = `new URL('../${compiled}', import.meta.url).href`
      // No line moves, so the source map stays valid.
      return { code: code.replaceAll('import.meta.url', address), map: null }
    },
  },
}

const CONFIGURED = ['settings/read-config', 'container'].map((name) => join(ROOT, 'src', 'cli', `${name}.ts`))

/** Returns modules with everything they import statically. */
function withImports(modules, graph) {
  const needed = new Set(modules)
  for (const module of needed)
    for (const imported of graph.getModuleInfo(module)?.importedIds ?? []) needed.add(imported)
  return needed
}

/**
 * Two files: `program` has the modules that are loaded before the command is known, so that help is quick; `configured` has
 * the others that every command with a configuration loads. The entry module is in neither: it waits for the command, so no
 * other file may wait for it.
 */
const GROUPS = [
  { name: 'program', from: [MAIN], priority: 2 },
  { name: 'configured', from: CONFIGURED, priority: 1 },
].map(({ name, from, priority }) => ({
  debugName: name,
  name: (id, graph) => (id !== MAIN && withImports(from, graph).has(id) ? name : null),
  priority,
}))

/**
 * Bundles the program (docs/decisions/0042-program-bundle.md): it replaces the compiled
 * `cli/main.js` by one that loads a few files of `chunks` instead of some hundred modules. The other modules stay where
 * they are: worker threads and child processes start from them.
 *
 * @param {string} folder output of the compiler
 * @param {readonly string[]} pageModules modules of the pages' scripts, for the licences
 */
export async function bundle(folder, pageModules) {
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
    codeSplitting: { groups: GROUPS },
    sourcemap: true,
    sourcemapExcludeSources: true,
  })
  await program.close()

  const programModules = output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []))
  const packages = [...programModules, ...pageModules].flatMap(
    (id) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(id)?.[1] ?? [],
  )
  const licences = [...new Set(packages)].sort().map((name) => {
    const home = join(ROOT, 'node_modules', name)
    const { version } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'))
    return `${name} ${version}\n\n${readFileSync(join(home, 'LICENSE'), 'utf8').trim()}\n`
  })
  writeFileSync(join(folder, 'chunks', 'LICENSES.txt'), licences.join('\n---\n\n'))
}
