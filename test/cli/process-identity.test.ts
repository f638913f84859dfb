import { expect, test } from 'vitest'
import { THIS_RUN } from '../../src/cli/process-identity.ts'

test('a holder of this boot is dead if its number belongs to no process with its start time', () => {
  const own = THIS_RUN.holder.process ?? ''
  expect(THIS_RUN.isDead(own)).toBe(false)
  // A different start time means another process with the same number.
  expect(THIS_RUN.isDead(`${own}0`)).toBe(true)
  expect(THIS_RUN.isDead('7@another boot')).toBe(false)
})
