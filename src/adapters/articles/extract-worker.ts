import { parentPort } from 'node:worker_threads'
import { extract } from './extract.ts'
import type { ExtractRequest } from './extract.ts'

/** Extracts one page per message, with one response each. The parent ends the thread if it takes too long. */
parentPort?.on('message', (request: ExtractRequest) => {
  parentPort?.postMessage(extract(request))
})

/** All modules are loaded. */
parentPort?.postMessage('ready')
