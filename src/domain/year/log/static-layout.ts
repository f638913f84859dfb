import type { Day } from '../../time.ts'
import type { ProvedLedger } from '../chain.ts'
import { objectPath } from '../examine.ts'
import type { Head, Manifest } from '../ledger.ts'
import { LOG_PATH } from './log-history.ts'
import type { Checkpoint } from './signed-note.ts'
import { lastTile, tilePath, tilesOfSize } from './tiles.ts'
import type { Tile } from './tiles.ts'

/**
 * Layout of an exported archive (docs/decisions/0070-signed-checkpoints.md): paths relative to the root of the export, the
 * same at every host. Files of the log are below `tlog/year`.
 */

const LOG_FOLDER = LOG_PATH.slice(1)

/** The signed checkpoint. Replaced only by a larger one that continues it. */
export const STATIC_CHECKPOINT = `${LOG_FOLDER}/checkpoint`

/** Keys of the log. Replaced at every export. */
export const STATIC_POLICY = `${LOG_FOLDER}/policy`

/** Every publication and gap, as `/api/feed/history/index` of a server. Replaced at every export. */
export const STATIC_INDEX = 'index.json'

/** Text of the legacy ledger, as `/api/feed/history/ledger/legacy` of a server; never changes once sealed. */
export const STATIC_LEGACY_LEDGER = 'ledger/legacy.ndjson'

/** Response headers for hosts that read this file. Replaced at every export. */
export const STATIC_HEADERS = '_headers'

/** The newest publication, and the list of all days: pages of an export. Replaced at every export. */
export const STATIC_HOME = 'index.html'
export const STATIC_DAYS = 'days.html'

/** The page of a missing file: without it, some hosts send {@link STATIC_HOME} for every path. */
export const STATIC_MISSING = '404.html'

/** The feeds of an export: one entry for each of the newest publications. Replaced at every export. */
export const STATIC_FEEDS = { atom: 'atom.xml', rss: 'rss.xml', json: 'feed.json' } as const

/** Styles and pictures of the pages, in a folder for each release; they never change. */
const STATIC_ASSETS = 'assets/'

/** Pages of publications. Each is replaced once, to link to the next one. */
const STATIC_PAGES = 'year/'

/** Returns the path of a file that the pages of a release use. */
export function staticAssetPath(release: string, name: string): string {
  return `${STATIC_ASSETS}${release}/${name}`
}

/**
 * Returns the path of the page of a publication.
 *
 * @param number counts the publications of this day from 1; only an imported archive has more than one
 */
export function staticPagePath(day: Day, number: number): string {
  return `${STATIC_PAGES}${day}${number === 1 ? '' : `-${number}`}.html`
}

/** Returns the path of a publication's bytes, below `/` at a server and below the root of an export. */
export function staticObjectPath(sha256: string): string {
  return `objects/${objectPath(sha256)}.json`
}

export function staticTilePath(tile: Tile): string {
  return `${LOG_FOLDER}/${tilePath(tile)}`
}

/** Number of sizes, ending with the current one, whose partial tiles of level 0 and partial bundles an export holds. */
const RECENT_SIZES = 256

/** Levels that grow with every entry. */
const BOTTOM_LEVELS = ['entries', 0] as const

/**
 * Returns all tiles and bundles of the export of a log of `size` entries: the full ones, and partial ones for readers
 * of an older checkpoint. Partial tiles of level 0 and partial bundles are those of the last 256 sizes; those of higher
 * levels are complete.
 *
 * @returns each file once
 */
export function staticTiles(size: number): Tile[] {
  const tiles = tilesOfSize(size)
  const oldest = Math.max(1, size - RECENT_SIZES + 1)
  const recent = Array.from({ length: size - oldest + 1 }, (_, index) =>
    BOTTOM_LEVELS.map((level) => lastTile(level, oldest + index)),
  )
  const partials = tiles
    .filter(({ level }) => !BOTTOM_LEVELS.some((bottom) => bottom === level))
    .map((tile) => Array.from({ length: tile.width }, (_, index) => ({ ...tile, width: index + 1 })))
  return [...new Map([tiles, ...recent, ...partials].flat().map((tile) => [tilePath(tile), tile])).values()]
}

/** Headers of a file, lower-case names. */
export type StaticFileHeaders = Record<'content-type' | 'cache-control', string>

const IMMUTABLE = 'public, max-age=31536000, immutable'
const REVALIDATED = 'public, max-age=60'

/** A rule for one path, or for all paths below a folder. */
interface HeaderRule {
  /** Ends with a slash for a folder. */
  path: string
  /** Null for files of different types, which hosts know by their extensions. */
  type: string | null
  cache: string
}

const HTML = 'text/html; charset=utf-8'

/** Content types of the files below {@link STATIC_ASSETS}, for hosts that store them. */
const ASSET_TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
}

/** No path matches two rules, because hosts would join their headers. */
const HEADER_RULES: readonly HeaderRule[] = [
  // Short, so that readers see the next checkpoint soon.
  { path: STATIC_CHECKPOINT, type: 'text/plain; charset=utf-8', cache: 'public, max-age=5' },
  { path: STATIC_POLICY, type: 'text/plain; charset=utf-8', cache: REVALIDATED },
  { path: `${LOG_FOLDER}/tile/`, type: 'application/octet-stream', cache: IMMUTABLE },
  { path: 'objects/', type: 'application/json; charset=utf-8', cache: IMMUTABLE },
  { path: STATIC_LEGACY_LEDGER, type: 'application/x-ndjson; charset=utf-8', cache: IMMUTABLE },
  { path: STATIC_INDEX, type: 'application/json; charset=utf-8', cache: REVALIDATED },
  { path: STATIC_HEADERS, type: 'text/plain; charset=utf-8', cache: REVALIDATED },
  { path: STATIC_HOME, type: HTML, cache: REVALIDATED },
  { path: STATIC_DAYS, type: HTML, cache: REVALIDATED },
  { path: STATIC_MISSING, type: HTML, cache: REVALIDATED },
  { path: STATIC_PAGES, type: HTML, cache: REVALIDATED },
  { path: STATIC_FEEDS.atom, type: 'application/atom+xml; charset=utf-8', cache: REVALIDATED },
  { path: STATIC_FEEDS.rss, type: 'application/rss+xml; charset=utf-8', cache: REVALIDATED },
  { path: STATIC_FEEDS.json, type: 'application/feed+json; charset=utf-8', cache: REVALIDATED },
  { path: STATIC_ASSETS, type: null, cache: IMMUTABLE },
]

/**
 * Returns the headers that a host should send with a file of an export.
 *
 * @throws RangeError for a path that an export does not have
 */
export function staticFileHeaders(path: string): StaticFileHeaders {
  const rule = HEADER_RULES.find((each) =>
    each.path.endsWith('/') ? path.startsWith(each.path) : path === each.path,
  )
  const type = rule?.type ?? ASSET_TYPES[path.split('.').at(-1) ?? '']
  if (rule === undefined || type === undefined) throw new RangeError(`an export has no file ${path}`)
  return { 'content-type': type, 'cache-control': rule.cache }
}

/** Returns the text of {@link STATIC_HEADERS}, in the syntax of Cloudflare Pages and Netlify. */
export function staticHeadersText(): string {
  const rules = HEADER_RULES.filter(({ path }) => path !== STATIC_HEADERS).map(({ path, type, cache }) => {
    const pattern = path.endsWith('/') ? `${path}*` : path
    const typeLine = type === null ? '' : `  Content-Type: ${type}\n`
    return `/${pattern}\n${typeLine}  Cache-Control: ${cache}\n`
  })
  return ['/*\n  Access-Control-Allow-Origin: *\n  X-Content-Type-Options: nosniff\n', ...rules].join('\n')
}

/** An archive up to a checkpoint, proved, as the pages of its export show it. */
export interface ExportedArchive {
  proved: ProvedLedger & { head: Head }
  checkpoint: Checkpoint
  /** The bytes of a publication, verified. */
  publication(manifest: Manifest): Promise<Uint8Array>
}

/** Pages and feeds of an export, for readers without a server. Paths are those of the tree; links are relative. */
export interface ArchivePages {
  /** Styles and pictures; a path always has the same bytes. */
  assets: ReadonlyMap<string, Uint8Array>
  /** The page of each publication, the oldest first. It links to the next page, which must be there before. */
  publications: readonly ArchivePage[]
  /** What names the newest publication or all of them: start page, list of days, feeds; and the page of a missing file. */
  overviews(): Promise<ReadonlyMap<string, Uint8Array>>
}

export interface ArchivePage {
  path: string
  /** False for the stored page of a publication that was the newest then, and no longer is. */
  isCurrent(stored: Uint8Array): boolean
  render(): Promise<Uint8Array>
}
