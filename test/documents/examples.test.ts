import { describe, expect, test } from 'vitest'
import { NEEDS } from '../../src/server/docs/markdown.ts'
import { examplePages, examplesOf, flawOf, isRun } from '../support/examples.ts'

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

describe('the marks of a block', () => {
  const flawsOf = (info: string): (string | null)[] =>
    examplesOf('page.md', `\`\`\`${info}\nx\n\`\`\`\n`).map(flawOf)

  test('marks are few, and none hides a runnable block', () => {
    for (const info of ['sh', 'sh needs=docker', 'sh needs=root,internet', 'text', 'cron'])
      expect([info, flawsOf(info)]).toEqual([info, [null]])
    for (const info of ['', 'bash', 'python3x needs=root', 'sh needs=luck', 'sh norun', 'py', 'json output'])
      expect([info, flawsOf(info)[0]]).toEqual([info, expect.any(String)])
  })

  test('marks are parsed with the line and the text of the block, also within a list', () => {
    const [example] = examplesOf('page.md', 'a\n\n- b\n\n  ```sh needs=jq\n  one\n\n    two\n  ```\n')
    expect(example).toMatchObject({
      line: 5,
      language: 'sh',
      text: 'one\n\n  two\n',
      needs: ['jq'],
    })
  })
})
