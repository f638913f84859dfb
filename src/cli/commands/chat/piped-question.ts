import { MESSAGE_MAX_LENGTH } from '../../../domain/agent/bounds.ts'
import { Refusal } from '../../../domain/refusal.ts'

/** More than a message may have, in its longest encoding: whatever comes after it would not be read. */
const QUESTION_MAX_BYTES = MESSAGE_MAX_LENGTH * 16

/**
 * The question of the command line, else of standard input to its end.
 *
 * @throws Refusal `usage` when there is none; the signal's reason
 */
export async function readQuestion(
  words: readonly string[],
  stdin: NodeJS.ReadStream,
  signal: AbortSignal,
): Promise<string> {
  const question = (words.length > 0 ? words.join(' ') : await readAll(stdin, signal)).trim()
  if (question === '')
    throw new Refusal('usage', 'the question is empty: dash chat "QUESTION", or echo QUESTION | dash chat')
  return question
}

async function readAll(stdin: NodeJS.ReadStream, signal: AbortSignal): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  const stop = (): void => void stdin.destroy(signal.reason as Error)
  signal.addEventListener('abort', stop, { once: true })
  try {
    signal.throwIfAborted()
    for await (const chunk of stdin as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      size += chunk.byteLength
      if (size > QUESTION_MAX_BYTES) break
    }
  } finally {
    signal.removeEventListener('abort', stop)
  }
  return new TextDecoder().decode(Buffer.concat(chunks))
}
