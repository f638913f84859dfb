import { expect, test } from 'vitest'
import { isCutShort } from '../../../../src/domain/models/lite/answer.ts'

const CALL = [{ name: 'write_file', arguments: '{}' }]

test.each([
  { kind: 'tool', text: 'thinking', toolCalls: [], finishReason: 'length', cut: true },
  { kind: 'tool', text: 'thinking', toolCalls: [], finishReason: 'stop', cut: false },
  { kind: 'tool', text: '', toolCalls: CALL, finishReason: 'length', cut: false },
  { kind: 'text', text: 'thinking', toolCalls: [], finishReason: 'length', cut: true },
  { kind: 'text', text: 'COMMAND: ls', toolCalls: [], finishReason: 'length', cut: false },
  { kind: 'text', text: 'TIME: 01:02:03', toolCalls: [], finishReason: 'length', cut: false },
  { kind: 'text', text: 'thinking', toolCalls: CALL, finishReason: null, cut: false },
] as const)(
  'a $kind answer of "$text" that ended by $finishReason: cut short is $cut',
  ({ cut, ...each }) => {
    const { kind, ...reply } = each
    expect(isCutShort(kind, reply)).toBe(cut)
  },
)
