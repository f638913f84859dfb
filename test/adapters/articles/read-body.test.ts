import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { unpackBody } from '../../../src/adapters/articles/page-client.ts'

const KIB = 1024

/** A body that never ends, and how much of it was taken. */
function endless(): { body: Readable; taken: () => number } {
  let taken = 0
  const body = new Readable({
    read() {
      taken += 16 * KIB
      this.push(Buffer.alloc(16 * KIB, 'a'))
    },
  })
  return { body, taken: () => taken }
}

test.each(['refuse', 'cut'] as const)(
  'an endless body is taken to its limit and no further: %s',
  async (beyond) => {
    const { body, taken } = endless()
    const reading = unpackBody(body, '', { maxBytes: 512 * KIB, beyond }, 'http://site.test/')
    if (beyond === 'cut') expect((await reading).byteLength).toBe(512 * KIB)
    else await expect(reading).rejects.toMatchObject({ why: 'tooLarge' })
    expect(body.destroyed).toBe(true)
    // What streams hold ready comes on top.
    expect(taken()).toBeLessThan(1024 * KIB)
  },
)
