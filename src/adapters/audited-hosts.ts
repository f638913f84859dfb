import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseJsonObject } from '../domain/json.ts'
import type { Clock } from '../domain/ports.ts'
import type { PublishedHistory, SeenLogs } from '../domain/year/ports.ts'
import type { PublishedResponse, PublishedRefusal } from '../domain/year/published-ledger.ts'
import {
  HOW_TO_REACH,
  OBJECT_MAX_BYTES,
  Refusal,
  errorCode,
  networkReason,
  messageOf,
  storageDamaged,
  storageUnavailable,
} from '../domain/refusal.ts'
import { formatInstant } from '../domain/time.ts'
import { summarizeBytes } from '../domain/year/examine.ts'
import { areSameBytes, decodeBase64, encodeBase64, sha256Hex } from '../domain/digest.ts'
import type { SeenLog } from '../domain/year/log/log-history.ts'
import { parsePolicy, openCheckpoint } from '../domain/year/log/signed-note.ts'
import { merkleTree, rootAt } from '../domain/year/log/merkle-tree.ts'
import { openHttpClient, isCompressed, readBody } from './http.ts'
import type { HttpResponse } from './http.ts'
import { makeFolders, storeFile } from './objects/file-driver.ts'

const USER_AGENT = 'dash (audits published history)'

/** Time limit for the response headers, and between two chunks of a body. */
const IDLE_TIMEOUT_MS = 20_000

/** Time limit of a whole response, including the connection. */
const RESPONSE_TIMEOUT_MS = 60_000

/** Time that a host may take for all requests together: this, and {@link TIME_PER_REQUEST_MS} for each of them. */
const TIME_BASE_MS = 60_000
const TIME_PER_REQUEST_MS = 2_000

/** Responses of a dash server that found a part of its archive damaged. */
const DAMAGED = new Map<string, 'history' | 'log'>([
  ['503 year_history_archive_corrupt', 'history'],
  ['503 year_log_archive_corrupt', 'log'],
])

/** Most bytes of the body of a refusal. */
const REFUSAL_MAX_BYTES = 16 * 1024

/** A request without a response is retried once: a dropped connection proves nothing about an archive. */
const ATTEMPTS = 2

export interface PublishedHistoryOptions {
  responseTimeoutMs?: number
  /** Maximum number of connections. */
  connections?: number
  clock?: Clock
}

/**
 * Reads the public history of the host at `base` over its own connections; `close` ends them. Redirects are not
 * followed: an auditor chooses the hosts it requests. A host that takes more than a minute and two seconds a request, on
 * average over all of them, counts as unavailable.
 *
 * @param base absolute http(s) URL; its path is prepended to the paths of the API
 */
export function openPublishedHistory(
  base: string,
  {
    responseTimeoutMs = RESPONSE_TIMEOUT_MS,
    connections = 8,
    clock = Date.now,
  }: PublishedHistoryOptions = {},
): PublishedHistory & { close(): Promise<void> } {
  const root = base.replace(/\/+$/, '')
  const http = openHttpClient({
    connect: { timeout: IDLE_TIMEOUT_MS },
    headersTimeout: IDLE_TIMEOUT_MS,
    bodyTimeout: IDLE_TIMEOUT_MS,
    connections,
  })

  const startedAt = clock()
  let requests = 0

  const requireSpeed = (): void => {
    const elapsed = clock() - startedAt
    if (elapsed > TIME_BASE_MS + requests * TIME_PER_REQUEST_MS)
      throw new Refusal<PublishedRefusal>(
        'source_unavailable',
        `the host ${root} is too slow: ${requests} requests took ${Math.round(elapsed / 1000)} s; run the audit again later`,
      )
    requests += 1
  }

  const fetchPath = async (
    maxBytes: number,
    path: string,
    ifNoneMatch: string,
    signal: AbortSignal,
  ): Promise<PublishedResponse> => {
    requireSpeed()
    const request = {
      url: `${root}${path}`,
      headers: requestHeaders(ifNoneMatch),
      timeoutMs: responseTimeoutMs,
      signal,
    }
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await http.exchange(request, (response) => readResponse(response, maxBytes))
      } catch (error) {
        signal.throwIfAborted()
        if (error instanceof BodyTooLong)
          throw new Refusal<PublishedRefusal>(
            'source_unavailable',
            `the host ${root} sent more than ${maxBytes} bytes for ${path}, which is not a response of a dash server${MUST_ANSWER_404}; ${HOW_TO_REACH}`,
          )
        if (attempt < ATTEMPTS) continue
        throw new Refusal<PublishedRefusal>(
          'source_unavailable',
          `the host ${root} cannot be reached (${networkReason(error)}); ${HOW_TO_REACH}`,
          { cause: error },
        )
      }
    }
  }

  return {
    base: root,
    at: (instant, knownDigests, signal) => {
      const path = `/api/feed/history?sort=year&at=${formatInstant(instant)}`
      return fetchPath(OBJECT_MAX_BYTES, path, knownDigests.map((sha256) => `"${sha256}"`).join(', '), signal)
    },
    file: (path, maxBytes, signal) => fetchPath(maxBytes, path, '', signal),
    close: () => http.close(),
  }
}

function requestHeaders(ifNoneMatch: string): Record<string, string> {
  return {
    // A cache between auditor and host may be a minute old.
    'cache-control': 'no-cache',
    'accept-encoding': 'identity',
    'user-agent': USER_AGENT,
    ...(ifNoneMatch === '' ? {} : { 'if-none-match': ifNoneMatch }),
  }
}

/** A body has more bytes than any response of its kind. */
class BodyTooLong extends Error {}

/** Reads a response and translates its status and headers. */
export async function readResponse(
  {
    statusCode,
    headers,
    body,
  }: Pick<HttpResponse, 'statusCode' | 'headers'> & { body: AsyncIterable<Uint8Array> },
  maxBytes: number,
): Promise<PublishedResponse> {
  const isRefusal = statusCode >= 400
  const bytes = await readBody(body, isRefusal ? REFUSAL_MAX_BYTES : maxBytes)
  if (isCompressed(headers)) {
    const encoding = printable(headers['content-encoding'])
    throw new Error(`the response is compressed with ${encoding}, which was not requested`)
  }
  if (bytes === null && !isRefusal) throw new BodyTooLong()
  const stated = {
    etag: printable(headers['etag']),
    lastModified: printable(headers['last-modified']),
    requestedAt: printable(headers['x-year-history-requested-at']),
  }
  if (statusCode === 200 && bytes !== null) return { is: 'text', bytes, ...summarizeBytes(bytes), ...stated }
  const code = isRefusal && bytes ? parseErrorCode(bytes) : null
  const answered = code === null ? String(statusCode) : `${statusCode} ${code}`
  const description = answered + adviceOf(statusCode, code, printable(headers['location']))
  const other = { description, byteSize: bytes?.byteLength ?? 0 }
  if (statusCode === 304) return { is: 'unchanged', ...stated, ...other }
  if (statusCode === 404) return { is: 'absent', ...other }
  return { is: 'other', damaged: DAMAGED.get(answered) ?? null, ...other }
}

/** What the operator of the host, or its auditor, can do about a response that is no file. */
function adviceOf(statusCode: number, code: string | null, location: string | null): string {
  if (code === 'invalid_at') return ' (the clock of this machine is ahead of the one of the host)'
  if (statusCode >= 300 && statusCode < 400 && location !== null)
    return ` (moved to ${location}: audit the address that it has now)`
  return statusCode === 403 ? MUST_ANSWER_404 : ''
}

/** Some hosts refuse a missing file, or send their start page for it. */
const MUST_ANSWER_404 = ' (a host must answer 404 for a file that it does not have)'

/** Returns a header's value if it is safe to print on a terminal; a host may send anything. */
function printable(value: string | string[] | undefined): string | null {
  return typeof value === 'string' && /^[\x20-\x7e]{1,200}$/.test(value) ? value : null
}

function parseErrorCode(bytes: Uint8Array): string | null {
  const code = parseJsonObject(new TextDecoder().decode(bytes))?.['error']
  return typeof code === 'string' && /^[a-z_]{1,64}$/.test(code) ? code : null
}

const utf8 = new TextEncoder()

/**
 * Opens the folder of seen logs. It has one file for each log, named by the SHA-256 of its origin in hexadecimal, then `.txt`:
 * the newest note; after an empty line the hosts that showed this log, the policy, and the hash of each entry. The hashes
 * prove that an older checkpoint of another host belongs to the same history. `forks` holds notes that contradict
 * another one.
 *
 * @param root the folder; created with the first file
 */
export function openSeenLogs(root: string): SeenLogs {
  const pathOf = (origin: string): string => join(root, `${sha256Hex(origin)}.txt`)
  const read = (path: string): SeenLog | null => {
    const text = readText(path)
    return text === null ? null : parseSeenLog(text, path)
  }
  return {
    async read(origin) {
      const seen = read(pathOf(origin))
      if (seen !== null && seen.checkpoint.origin !== origin)
        throw damaged(pathOf(origin), `it is a checkpoint of ${seen.checkpoint.origin}`)
      return seen
    },

    async originOf(base) {
      const logs = namesIn(root).map((name) => read(join(root, name)))
      return logs.find((seen) => seen?.hosts.includes(base))?.checkpoint.origin ?? null
    },

    async replace(before, seen) {
      const path = pathOf(seen.checkpoint.origin)
      const expected = before && formatSeenLog(before)
      return store(path, formatSeenLog(seen), () => readText(path) === expected)
    },

    async keepFork(note) {
      const path = join(root, 'forks', sha256Hex(note))
      store(path, note, false)
      return path
    },
  }
}

function formatSeenLog({ note, hosts, policy, tree }: SeenLog): string {
  const hostLines = hosts.map((host) => `host ${host}\n`)
  const leafLines = (tree.levels[0] ?? []).map((hash) => `leaf ${encodeBase64(hash)}\n`)
  return [note, '\n', ...hostLines, policy, ...leafLines].join('')
}

/** @throws Refusal `storage_damaged` unless the text is one that {@link formatSeenLog} returns */
function parseSeenLog(text: string, path: string): SeenLog {
  // A note has one empty line, before its signatures.
  const end = text.indexOf('\n\n', text.indexOf('\n\n') + 2) + 1
  const note = text.slice(0, end)
  const lines = text.slice(end + 1).split('\n')
  const after = (keyword: string): string[] =>
    lines.filter((line) => line.startsWith(keyword)).map((line) => line.slice(keyword.length))
  const policy = lines.filter((line) => !/^(host|leaf) /.test(line)).join('\n')
  const parsed = parsePolicy(policy)
  if (parsed.problem !== null) throw damaged(path, `its policy is invalid: ${parsed.problem}`)
  const opened = openCheckpoint(note, parsed.keys)
  if (opened.problem !== null) throw damaged(path, opened.problem)
  const { checkpoint } = opened
  const tree = merkleTree(after('leaf ').map((line) => decodeBase64(line) ?? new Uint8Array()))
  if (tree.size !== checkpoint.size || !areSameBytes(rootAt(tree, tree.size), checkpoint.root))
    throw damaged(path, 'its hashes do not have the root of the checkpoint')
  const seen = { note, hosts: after('host '), policy, checkpoint, tree }
  if (formatSeenLog(seen) !== text) throw damaged(path, 'its lines are not in their order')
  return seen
}

function damaged(path: string, problem: string): Refusal {
  return storageDamaged(
    `the state file ${path} is damaged: ${problem}. This is no finding about the host. Restore the file, or remove it to forget this log, and give its policy with --policy`,
  )
}

function namesIn(root: string): string[] {
  try {
    return readdirSync(root).filter((name) => /^[\da-f]{64}\.txt$/.test(name))
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return []
    throw storageUnavailable(`the state folder ${root} cannot be read (${messageOf(error)})`, error)
  }
}

/** @returns null if there is no such file */
function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null
    throw storageUnavailable(`the state file ${path} cannot be read (${messageOf(error)})`, error)
  }
}

function store(path: string, text: string, replace: Parameters<typeof storeFile>[2]): boolean {
  try {
    makeFolders(dirname(path))
    return storeFile(path, utf8.encode(text), replace)
  } catch (error) {
    if (error instanceof Refusal) throw error
    throw storageUnavailable(
      `the state file ${path} cannot be written (${messageOf(error)}); choose another folder with --state`,
      error,
    )
  }
}
