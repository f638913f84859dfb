import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
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

/** One thread, started when it is needed, and anew after it had to be ended; one page at a time. */
export function openExtractor({
  script = new URL('./extract-worker.js', import.meta.url),
  extractMs = EXTRACT_MS,
}: ExtractorOptions = {}): Extractor {
  let worker: Worker | null = null
  let last: Promise<unknown> = Promise.resolve()

  const started = async (): Promise<Worker> => {
    const ready = await start(script)
    ready.once('exit', () => {
      if (worker === ready) worker = null
    })
    return ready
  }

  const end = async (): Promise<void> => {
    const ended = worker
    worker = null
    await ended?.terminate()
  }

  const run = async (request: ExtractRequest, signal: AbortSignal): Promise<Extracted> => {
    signal.throwIfAborted()
    worker ??= await started()
    signal.throwIfAborted()
    try {
      return await ask(worker, request, extractMs, signal)
    } catch (error) {
      // A thread at its memory limit may take long to end: the next page gets another thread meanwhile.
      void end()
      signal.throwIfAborted()
      throw error
    }
  }

  return {
    extract(request, signal) {
      const turn = last.then(() => run(request, signal))
      last = turn.catch(() => undefined)
      return turn
    },
    close: end,
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

function ask(worker: Worker, request: ExtractRequest, ms: number, signal: AbortSignal): Promise<Extracted> {
  return new Promise((resolve, reject) => {
    const settle = (act: () => void): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', aborted)
      worker.off('message', answered)
      worker.off('error', failed)
      worker.off('exit', exited)
      act()
    }
    const refuse = (why: string, cause?: unknown): void =>
      settle(() => reject(new PageProblem(null, `the text could not be taken out: ${why}`, { cause })))
    const answered = (extracted: Extracted): void => settle(() => resolve(extracted))
    const failed = (error: Error): void => refuse(error.message, error)
    const exited = (): void => refuse('its thread ended')
    const aborted = (): void => refuse('stopped')
    const timer = setTimeout(() => refuse(`it took longer than ${ms} ms`), ms)
    worker.on('message', answered)
    worker.on('error', failed)
    worker.on('exit', exited)
    signal.addEventListener('abort', aborted, { once: true })
    worker.postMessage(request)
  })
}
