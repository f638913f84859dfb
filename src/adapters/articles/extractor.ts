import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import pLimit from 'p-limit'
import { TimeLimitExceeded, withTimeLimit } from '../http.ts'
import type { ExtractRequest, Extracted } from './extract.ts'
import { PageProblem } from './page-client.ts'

/** Time limit of one page; a normal page takes some tens of milliseconds. */
const EXTRACT_MS = 5_000

const MEMORY = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 }

export interface Extractor {
  /**
   * Extracts the text of HTML in a thread, which is ended if it needs too much time or memory.
   *
   * @throws PageProblem if the thread exceeds its limits or fails
   */
  extract(request: ExtractRequest, signal: AbortSignal): Promise<Extracted>
  close(): Promise<void>
}

export interface ExtractorOptions {
  /** Module of the thread, from the build: a thread does not load TypeScript. */
  script?: URL
  extractMs?: number
}

/**
 * Opens an extractor with one thread, which starts with the first page and is replaced after it was ended. It
 * extracts one page at a time.
 */
export function openExtractor({
  script = new URL('./extract-worker.js', import.meta.url),
  extractMs = EXTRACT_MS,
}: ExtractorOptions = {}): Extractor {
  const oneAtATime = pLimit(1)
  let worker: Worker | null = null
  const startWorker = async (): Promise<Worker> => {
    const ready = await start(script)
    // `error` precedes `exit`; the thread takes no page in between.
    const clearWorker = (): void => {
      if (worker === ready) worker = null
    }
    ready.once('error', clearWorker).once('exit', clearWorker)
    return ready
  }
  const endWorker = async (): Promise<void> => {
    const ended = worker
    worker = null
    await ended?.terminate()
  }
  const extract = async (request: ExtractRequest, signal: AbortSignal): Promise<Extracted> => {
    signal.throwIfAborted()
    worker ??= await startWorker()
    try {
      return await extractInWorker(worker, request, extractMs, signal)
    } catch (cause) {
      // A thread at its memory limit may end slowly: the next page gets a new thread.
      void endWorker()
      signal.throwIfAborted()
      const timeoutMessage =
        cause instanceof TimeLimitExceeded ? `extraction timed out after ${extractMs} ms` : null
      const reason = timeoutMessage ?? (cause instanceof Error ? cause.message : String(cause))
      throw new PageProblem(null, `the text could not be extracted: ${reason}`, { cause })
    }
  }
  return {
    extract: (request, signal) => oneAtATime(() => extract(request, signal)),
    close: endWorker,
  }
}

/** Starts a thread and waits until its modules are loaded, so that loading does not count against a page's time. */
async function start(script: URL): Promise<Worker> {
  // Not the options of this process: a thread rejects some of them.
  const worker = new Worker(script, { resourceLimits: MEMORY, execArgv: [] })
  // An idle thread can fail too, for example while it is ended at its memory limit.
  worker.on('error', () => undefined)
  const exited = new AbortController()
  worker.once('exit', () => exited.abort())
  await once(worker, 'message', { signal: exited.signal })
  return worker
}

/**
 * Sends a request to a thread and waits for its response. Rejects if the thread fails or ends, and at the time
 * limit.
 */
async function extractInWorker(
  worker: Worker,
  request: ExtractRequest,
  ms: number,
  signal: AbortSignal,
): Promise<Extracted> {
  const listening = new AbortController()
  try {
    return await withTimeLimit(ms, signal, async (limitedSignal) => {
      limitedSignal.addEventListener('abort', () => listening.abort(), { once: true })
      const replied = once(worker, 'message', { signal: listening.signal })
      const exited = once(worker, 'exit', { signal: listening.signal })
      worker.postMessage(request)
      const ended = exited.then(() => Promise.reject(new Error('its thread ended')))
      const [extracted] = await Promise.race([replied, ended])
      return extracted as Extracted
    })
  } finally {
    listening.abort()
  }
}
