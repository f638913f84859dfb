import type { InputLine, LineSource } from '../../src/domain/ports.ts'

/** A file of these lines. */
export function lineSource(name: string, ...texts: string[]): LineSource {
  return {
    name,
    async *lines() {
      yield texts.map((text, index): InputLine => ({ number: index + 1, text }))
    },
  }
}
