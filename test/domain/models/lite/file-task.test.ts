import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  callsFollowFormat,
  gradeFiles,
  WRITE_FILE_TOOL,
  looksLikeCall,
  safePath,
} from '../../../../src/domain/models/lite/file-task.ts'
import { drawItems } from '../../../../src/jobs/models/lite-suite.ts'
import { solutions } from '../../../jobs/models/lite-responses.ts'
import type { ModelResponse } from '../../../../src/domain/models/lite/suite.ts'
import { anyText } from '../../../support/any-text.ts'

const items = drawItems('2026-03-01')
const { files } = items
const solved = solutions(items).tool

const replyWith = (toolCalls: ModelResponse['toolCalls'], text = ''): ModelResponse => ({
  text,
  toolCalls,
  finishReason: null,
})
const call = (path: unknown, content: unknown, name = 'write_file'): ModelResponse['toolCalls'][number] => ({
  name,
  arguments: JSON.stringify({ path, content }),
})
const lastCalls = solved.toolCalls.slice(1)
const [first] = files.requested

describe('the files task', () => {
  test('the files task is solved by one call a file, in any order, with ./ or not, the last call of a path counting', () => {
    const details = { usedTool: true, noUnsafePaths: true, toolCallAsText: false }
    expect(gradeFiles(files, solved)).toMatchObject({ points: 350, details })
    const dotted = files.requested.map(({ path, solution }) => call(`./${path}`, solution))
    const twice = [call(first?.path, 'first'), ...solved.toolCalls]
    for (const calls of [solved.toolCalls.toReversed(), dotted, twice])
      expect(gradeFiles(files, replyWith(calls)).points).toBe(350)
  })

  test('each file and property has its own points', () => {
    const { points, details } = gradeFiles(files, replyWith(lastCalls))
    expect(points).toBe(350 - 85)
    expect(gradeFiles(files, replyWith([call(first?.path, ''), ...lastCalls])).points).toBe(350 - 60)
    for (const { kind, properties } of files.requested) {
      for (const name of [`${kind}Created`, ...Object.keys(properties)])
        expect(details[name], name).toBe(kind !== first?.kind)
    }
  })

  test('an unsafe path costs the points for safe ones, and calls that write something else earn nothing', () => {
    const unsafe = gradeFiles(files, replyWith([...solved.toolCalls, call('/etc/passwd', 'x')]))
    expect(unsafe).toMatchObject({ points: 350 - 25, details: { noUnsafePaths: false } })
    const other = gradeFiles(files, replyWith([call('hello.txt', 'hello')]))
    expect(other).toMatchObject({ points: 0, details: { usedTool: true } })
  })

  test('invalid calls are counted in three ways, and cost the points for valid calls', () => {
    const wrong = [
      { name: 'write_file', arguments: '{"path": "a' },
      { name: 'write_file', arguments: '' },
      { name: 'writeFile', arguments: '{}' },
      { name: 'write_file', arguments: '{"path":"a"}' },
      { name: 'write_file', arguments: '{"path":"a","content":"b","mode":"w"}' },
      { name: 'write_file', arguments: '{"path":"a","content":{"b":1}}' },
      { name: 'write_file', arguments: JSON.stringify('{"path":"a","content":"b"}') },
      { name: 'write_file', arguments: '{"path":"a","content":"b","__proto__":{"c":1}}' },
      { name: '__proto__', arguments: 'null' },
    ]
    const { points, details } = gradeFiles(files, replyWith([...solved.toolCalls, ...wrong]))
    expect(points).toBe(350 - 35)
    const counts = { invalidJson: 2, unknownName: 2, schemaMismatch: 5, calls: 12 }
    expect(details).toMatchObject({ validCalls: false, ...counts })
    expect(({} as Record<string, unknown>)['c']).toBeUndefined()
  })

  const asText = JSON.stringify({
    name: 'write_file',
    arguments: { path: first?.path, content: first?.solution },
  })

  // prettier-ignore
  test.each([
    asText, 'write_file("a", "b")',
    '<|channel|>commentary to=functions.write_file <|message|>{}', '<function=write_file>{}</function>',
  ])('text that looks like a call is recognised: %.60s', (text) => {
    const { points, details } = gradeFiles(files, replyWith([], text))
    expect(points).toBe(0)
    expect(details).toMatchObject({ usedTool: false, toolCallAsText: true, noUnsafePaths: false })
    expect(callsFollowFormat(replyWith([], text))).toBe(false)
  })

  test('a response has the requested form when every call is valid, whatever it wrote', () => {
    expect(callsFollowFormat(solved)).toBe(true)
    expect(callsFollowFormat(replyWith([call('x', 'y')]))).toBe(true)
    expect(callsFollowFormat(replyWith([call('x', 'y'), call('x', 'y', 'other')]))).toBe(false)
    expect(callsFollowFormat(replyWith([]))).toBe(false)
    expect(looksLikeCall('I will now write the files with the tool.')).toBe(false)
  })

  test('grading never throws and never exceeds the maximum, whatever a model sends', () => {
    const anyCall = fc.record({
      name: fc.constantFrom('write_file', 'x'),
      arguments: fc.oneof(fc.string(), fc.json()),
    })
    fc.assert(
      fc.property(fc.array(anyCall), anyText(), (calls, text) => {
        const { points } = gradeFiles(files, replyWith([...calls, ...lastCalls], text))
        expect(points).toBeGreaterThan(0)
        expect(points).toBeLessThanOrEqual(350 - 85)
      }),
    )
  })
})

// prettier-ignore
test.each(['../a', 'C:/a', 'c:a', 'a\\b', 'a\0b', '', 'a'.repeat(256)])('the path %j is not safe', (path) => {
  expect(safePath(path)).toBeNull()
})

test('the tool definition and the check of its calls share one schema', () => {
  const text = { type: 'string', description: expect.any(String) as string }
  const object = { type: 'object', required: ['path', 'content'], additionalProperties: false }
  expect(WRITE_FILE_TOOL.parameters).toEqual({ ...object, properties: { path: text, content: text } })
})
