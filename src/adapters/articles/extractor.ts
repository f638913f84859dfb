import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import pLimit from 'p-limit'
import { TimeLimitExceeded, withTimeLimit } from '../http.ts'
import type { ExtractRequest, Extracted } from './extract.ts'
import { PageProblem } from './page-client.ts'

/** A page for people takes some tens of milliseconds. */
const EXTRACT_MS = 5_000

const MEMORY = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 }

export interface Extractor {
  /**
   * The text in HTML, taken out in a thread that is ended when it needs too much time or memory.
   *
   * @throws PageProblem when it needed too much, or failed
   */
  extract(request: ExtractRequest, signal: AbortSignal): Promise<Extracted>
  close(): Promise<void>
}

export interface ExtractorOptions {
  /** Module of the thread: of the build, since a thread reads no TypeScript. */
  script?: URL
  extractMs?: number
}

/** One thread, started when it is needed, and again after it had to be ended; one page at a time. */
export function openExtractor({
  script = new URL('./extract-worker.js', import.meta.url),
  extractMs = EXTRACT_MS,
}: ExtractorOptions = {}): Extractor {
  const oneAtATime = pLimit(1)
  let worker: Worker | null = null
  const startWorker = async (): Promise<Worker> => {
    const ready = await start(script)
    // It fails before it exits, and takes no page in between.
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
      // A thread at its memory limit may take long to end: the next page gets another thread meanwhile.
      void endWorker()
      signal.throwIfAborted()
      const timeoutMessage = cause instanceof TimeLimitExceeded ? `it took longer than ${extractMs} ms` : null
      const reason = timeoutMessage ?? (cause instanceof Error ? cause.message : String(cause))
      throw new PageProblem(null, `the text could not be taken out: ${reason}`, { cause })
    }
  }
  return {
    extract: (request, signal) => oneAtATime(() => extract(request, signal)),
    close: endWorker,
  }
}

/** A thread that has loaded what it needs, which is no page's doing and takes nothing of a page's time. */
async function start(script: URL): Promise<Worker> {
  // Without the options this process was started with, some of which a thread does not take.
  const worker = new Worker(script, { resourceLimits: MEMORY, execArgv: [] })
  // An idle thread can fail too, for example one at its memory limit that is being ended.
  worker.on('error', () => undefined)
  const exited = new AbortController()
  worker.once('exit', () => exited.abort())
  await once(worker, 'message', { signal: exited.signal })
  return worker
}

/** The response of a thread; rejects when the thread fails or ends, as `once` does, and at the time limit. */
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
