import { readdirSync, readFileSync } from 'node:fs'
import { basename, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { H3 } from 'h3'
import { sha256Hex } from '../../domain/digest.ts'
import { once } from '../../domain/once.ts'
import { IMMUTABLE, NO_STORE, compressible, respondCompressed, respondJson } from '../respond.ts'

/** The styles and pictures of the pages, and the scripts that the build makes of `browser`. */
const FOLDERS = ['assets/page/', 'dist-page/'].map((name) =>
  fileURLToPath(new URL(`../../../${name}`, import.meta.url)),
)

const FILE_TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

const RELEASE_LENGTH = 16

/** The files that pages without scripts use. */
const PLAIN_FILES = new Set(['comment.svg', 'icon.svg', 'page.css'])

const HEADERS = {
  'cross-origin-resource-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
}

interface Asset extends ReturnType<typeof compressible> {
  type: string
}

interface Release {
  /** Digest of all files together. */
  id: string
  files: ReadonlyMap<string, Asset>
}

export interface Assets {
  /**
   * URL of a file, which changes whenever any file does. Relative imports between modules stay within one release.
   */
  href(name: string): string
}

/**
 * Mounts `/assets/<release>/<name>`, which is immutable (docs/page.md). Files are read once, at the first use of any of
 * them.
 */
export function mountAssets(app: H3): Assets {
  const release = once(readRelease)

  app.get('/assets/:release/:name', (event) => {
    const { id, files } = release()
    const { release: releaseId, name = '' } = event.context.params ?? {}
    const asset = files.get(name)
    if (!asset) return respondJson(event, 404, NO_STORE, { error: 'not_found' })
    // A page of another release gets the current files, and must not cache them under its own URL.
    const headers = { ...HEADERS, 'cache-control': releaseId === id ? IMMUTABLE : 'no-cache' }
    return respondCompressed(event, 200, headers, asset, { 'content-type': asset.type })
  })
  return {
    href(name) {
      const { id, files } = release()
      if (!files.has(name)) throw new Error(`unknown asset ${name}`)
      return `/assets/${id}/${name}`
    },
  }
}

function readRelease(): Release {
  const paths = FOLDERS.flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)))
  const files = new Map<string, Asset>()
  for (const path of paths.sort()) {
    const type = FILE_TYPES[extname(path)]
    // A build that is under way has a file with another name.
    if (type === undefined) continue
    files.set(basename(path), { type, ...compressible(readFileSync(path)) })
  }
  return { id: idOf(files), files }
}

function idOf(files: Release['files']): string {
  const names = [...files].map(([name, { digest }]) => `${name} ${digest}\n`)
  return sha256Hex(names.join('')).slice(0, RELEASE_LENGTH)
}

/** The files of pages without scripts, which have an id of their own: scripts change more often. */
export function plainRelease(): Release {
  const files = new Map([...readRelease().files].filter(([name]) => PLAIN_FILES.has(name)))
  return { id: idOf(files), files }
}
