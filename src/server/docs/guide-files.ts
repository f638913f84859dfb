import { readdirSync } from 'node:fs'
import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Where the guides are, from the sources as from the build. */
const ROOT = new URL('../../../', import.meta.url)

/** Documents outside `docs/` that guides lead to, with the name each has below `/docs`. */
const OTHERS: Readonly<Record<string, string>> = {
  'README.md': 'readme',
  'CHANGELOG.md': 'changelog',
  'CONTRIBUTING.md': 'contributing',
  'bench/README.md': 'benchmarks',
  'assets/demo/SOURCES.md': 'demo-sources',
}

/** One of the project's documents. */
export interface GuideFile {
  /** From the project's root on, with `/`. */
  name: string
  /** Where the server shows it. */
  path: string
}

/** The project's own documents, in the order of their names. */
export function guideFiles(): GuideFile[] {
  const names = readdirSync(new URL('docs/', ROOT), { recursive: true, encoding: 'utf8' })
    .map((name) => `docs/${name.replaceAll('\\', '/')}`)
    .filter((name) => name.endsWith('.md'))
    .sort()
  return [...names, ...Object.keys(OTHERS)].map((name) => ({ name, path: pathOf(name) }))
}

export function filePathOf({ name }: GuideFile): string {
  return fileURLToPath(new URL(name, ROOT))
}

function pathOf(name: string): string {
  const other = OTHERS[name]
  if (other !== undefined) return `/docs/${other}`
  return `/${name.replace(/(?:\/README)?\.md$/, '')}`
}

/**
 * Where a link of a document leads on the server, or null for a file that is no document.
 *
 * @param from the document it stands in
 * @param link relative to that document, as a reader of the files would follow it
 */
export function linkedPath(files: readonly GuideFile[], from: GuideFile, link: string): string | null {
  const [target = '', ...fragment] = link.split('#')
  const name = target === '' ? from.name : posix.join(posix.dirname(from.name), target)
  const wanted = new Set([name, posix.join(name, 'README.md')])
  const found = files.find((file) => wanted.has(file.name))
  return found ? [found.path, ...fragment].join('#') : null
}
