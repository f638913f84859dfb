import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import type { H3, H3Event } from 'h3'
import { matchesEntityTag, acceptsGzip, NO_STORE, respond, respondJson } from '../respond.ts'
import { sha256Hex } from '../../domain/digest.ts'
/** The pages' own scripts and styles. */
const FOLDER = fileURLToPath(new URL('../../../assets/page/', import.meta.url))

/**
 * Built files of packages that pages load, by the name they are served under, as the package exports them; nothing else of
 * a package is.
 */
const PACKAGE_FILES: Readonly<Record<string, string>> = {
  'marked.js': 'marked',
  'purify.js': 'dompurify/dist/purify.min.js',
  'swagger-ui.css': 'swagger-ui-dist/swagger-ui.css',
  'swagger-ui-bundle.js': 'swagger-ui-dist/swagger-ui-bundle.js',
  'uPlot.iife.min.js': 'uplot/dist/uPlot.iife.min.js',
  'uPlot.min.css': 'uplot/dist/uPlot.min.css',
}

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

const RELEASE_LENGTH = 16

const HEADERS = {
  'cross-origin-resource-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  vary: 'Accept-Encoding',
}

/** One file as it is served. */
interface Asset {
  type: string
  etag: string
  bytes: Buffer
  /** Compressed when it is first asked for. */
  gzip: Buffer | null
}

interface Release {
  /** Digest of all files together. */
  id: string
  files: ReadonlyMap<string, Asset>
}

/** Scripts, styles and images of the pages. */
export interface Assets {
  /**
   * Address of a file, which changes whenever any file does. Modules that import each other by relative paths stay within
   * one release.
   */
  href(name: string): string
}

/**
 * Mounts `/assets/<release>/<name>`, which may be kept for ever, and `/assets/<name>`, which is always asked for again
 * (docs/page.md). Files are read once, when the first of them is needed.
 */
export function mountAssets(app: H3): Assets {
  let kept: Release | null = null
  const release = (): Release => (kept ??= readRelease())

  app.get('/assets/:name', (event) =>
    serve(event, release().files.get(event.context.params?.['name'] ?? ''), 'no-cache'),
  )
  app.get('/assets/:release/:name', (event) => {
    const { id, files } = release()
    const { release: asked, name = '' } = event.context.params ?? {}
    // A page of another release meets today's files, and must not keep them under its own address.
    const cacheControl = asked === id ? 'public, max-age=31536000, immutable' : 'no-cache'
    return serve(event, files.get(name), cacheControl)
  })
  return {
    href(name) {
      const { id, files } = release()
      if (!files.has(name)) throw new Error(`there is no asset ${name}`)
      return `/assets/${id}/${name}`
    },
  }
}

function serve(event: H3Event, asset: Asset | undefined, cacheControl: string): Response {
  if (!asset) return respondJson(event, 404, NO_STORE, { error: 'not_found' })
  const zipped = acceptsGzip(event.req.headers.get('accept-encoding'))
  const etag = zipped ? `"${asset.etag}-gzip"` : `"${asset.etag}"`
  const headers = { ...HEADERS, 'cache-control': cacheControl, etag }
  if (matchesEntityTag(event.req.headers.get('if-none-match'), etag))
    return respond(event, 304, headers, null)
  const type = { 'content-type': asset.type }
  if (!zipped) return respond(event, 200, { ...headers, ...type }, asset.bytes)
  asset.gzip ??= gzipSync(asset.bytes)
  return respond(event, 200, { ...headers, ...type, 'content-encoding': 'gzip' }, asset.gzip)
}

function readRelease(): Release {
  const own = readdirSync(FOLDER).map((name) => [name, join(FOLDER, name)] as const)
  const require = createRequire(import.meta.url)
  const others = Object.entries(PACKAGE_FILES).map(([name, path]) => [name, require.resolve(path)] as const)
  const files = new Map<string, Asset>()
  for (const [name, path] of [...own, ...others].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const type = TYPES[extname(name)]
    if (type === undefined) throw new Error(`${path} has no known type`)
    const bytes = readFileSync(path)
    files.set(name, { type, etag: sha256Hex(bytes), bytes, gzip: null })
  }
  const names = [...files].map(([name, { etag }]) => `${name} ${etag}\n`)
  return { id: sha256Hex(names.join('')).slice(0, RELEASE_LENGTH), files }
}
