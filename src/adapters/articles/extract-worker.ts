import { parentPort } from 'node:worker_threads'
import { extract } from './extract.ts'
import type { ExtractRequest } from './extract.ts'

/** One page after the other, each answered once; whoever asks ends the thread when it takes too long. */
parentPort?.on('message', (request: ExtractRequest) => {
  parentPort?.postMessage(extract(request))
})

/** Everything is loaded. */
parentPort?.postMessage('ready')
