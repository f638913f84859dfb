import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { drawItems } from '../../../src/domain/models/lite/items.ts'
import type { TaskResult } from '../../../src/domain/models/lite/suite.ts'
import { makeLiteSuite } from '../../../src/jobs/models/lite-suite.ts'
import { sandbox } from '../../support/lite-shell.ts'

const shell = await sandbox()

const text = (content: string): { text: string; toolCalls: []; finishReason: string } => ({
  text: content,
  toolCalls: [],
  finishReason: 'stop',
})
const pointsOf = (results: readonly TaskResult[]): number[] => results.map(({ points }) => points)

describe('the example of docs/lite-suite.md', () => {
  const page = readFileSync(fileURLToPath(new URL('../../../docs/lite-suite.md', import.meta.url)), 'utf8')
  const items = drawItems('2026-11-21')

  test('the example shows the prompts of its day', () => {
    for (const { messages } of Object.values(items.prompts)) expect(page).toContain(messages[0]?.content)
  })

  test('the example shows the points of each response', async () => {
    const suite = makeLiteSuite('2026-11-21', shell)
    const rows = [
      ...page.matchAll(/^\| ([^|\n]*`(?:COMMAND|TIME): (?:[^|\n]|\\\|)*)\|\s+(\d+) \|\s+(\d+) \|$/gm),
    ]
    expect(rows).toHaveLength(5)
    for (const [, answer = '', command, clock] of rows) {
      const lines = [...answer.matchAll(/`((?:COMMAND|TIME): [^`]*)`/g)].map(([, line = '']) => line)
      const reply = text(lines.join('\n').replaceAll('\\|', '|'))
      expect(pointsOf(await suite.grade('text', reply)), answer).toEqual([Number(command), Number(clock)])
    }
  })
})
