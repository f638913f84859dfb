import { extract } from './extract.ts'
import type { ExtractRequest } from './extract.ts'

/** Extracts one page per message, with one response each. The parent kills the process if it takes too long. */
process.on('message', (request: ExtractRequest) => process.send?.(extract(request)))
process.once('disconnect', () => process.exit())

/** All modules are loaded. */
process.send?.('ready')
