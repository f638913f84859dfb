import { describe, expect, test } from 'vitest'
import { NEEDS } from '../../src/server/docs/markdown.ts'
import { examplePages, examplesOf, flawOf, isRun } from './examples.ts'

describe('every fenced block of', () => {
  test.each(examplePages())(
    'every fenced block of %s names its language, and runs or names its prerequisites',
    (page) => {
      const examples = examplesOf(page)
      const flaws = examples.flatMap((example) => {
        const flaw = flawOf(example)
        return flaw === null ? [] : [`${page}:${example.line}: ${flaw}`]
      })
      expect(flaws).toEqual([])
    },
  )

  test('most runnable blocks of all pages run', () => {
    const runnable = examplePages()
      .flatMap((page) => examplesOf(page))
      .filter((example) => isRun({ ...example, needs: [] }))
    const kept = runnable.filter((example) => example.needs.some((need) => need in NEEDS))
    expect(runnable.length).toBeGreaterThan(40)
    expect(kept.length).toBeLessThan(runnable.length / 3)
  })
})
