import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  RESPONSE_FORMAT,
  isCutShort,
  parseTextResponse,
} from '../../../../src/domain/models/lite/text-response.ts'
import { anyText } from '../../../support/any-text.ts'

const command = `grep -rl 'a: b' . | sort`
const time = '12:05:59'
const right = `COMMAND: ${command}\nTIME: ${time}`

describe('a response', () => {
  test('a response in the requested form is parsed', () => {
    expect(parseTextResponse(right)).toEqual({ command, time, followsFormat: true })
    expect(parseTextResponse(`\n${right}\r\n`)).toEqual({ command, time, followsFormat: true })
  })

  test.each([
    ['bold labels', `**COMMAND:** ${command}\n**TIME:** ${time}`],
    ['labels in small letters', `command: ${command}\ntime: ${time}`],
    ['a list', `- COMMAND: \`${command}\`\n- TIME: \`${time}\``],
    ['numbers', `1. COMMAND: ${command}\n2. TIME: ${time}`],
    ['headings', `### Command:\n\n\`\`\`bash\n${command}\n\`\`\`\n\n### Time:\n${time}`],
    ['a fence around all of it', `\`\`\`\n${right}\n\`\`\``],
    ['a fence behind the label', `COMMAND: \`\`\`sh\n${command}\n\`\`\`\nTIME: ${time}`],
    ['a fence without labels', `Here you are:\n\`\`\`sh\n${command}\n\`\`\`\nIt is ${time}.`],
    ['a first try', `COMMAND: ls\nTIME: 01:01:01\nNo, wait.\n${right}`],
    ['a prompt sign', `COMMAND: $ ${command}\nTIME: ${time} (true time)`],
    ['prose around it', `Sure!\n${right}\nHope this helps.`],
  ])('a response with %s is parsed too, but does not have the requested form', (_name, text) => {
    expect(parseTextResponse(text)).toEqual({ command, time, followsFormat: false })
  })

  test.each([`<think>COMMAND: ls\nTIME: 01:01:01</think>\n${right}`, `COMMAND: ls\n</think>${right}`])(
    'a response begins after the reasoning that a service left in: %j',
    (text) => expect(parseTextResponse(text)).toEqual({ command, time, followsFormat: true }),
  )

  test.each(['', 'I cannot do that.', RESPONSE_FORMAT.replaceAll(':', ''), 'COMMAND:\nTIME:'])(
    'the response %j has no time',
    (text) => {
      expect(parseTextResponse(text)).toMatchObject({ time: null, followsFormat: false })
    },
  )

  test('a command of several lines and back quotes within one are kept', () => {
    expect(parseTextResponse('COMMAND:\n```\nfor f in *; do\n  echo $f\ndone\n```\nTIME: x').command).toBe(
      'for f in *; do\n  echo $f\ndone',
    )
    expect(parseTextResponse('COMMAND: echo `ls` x').command).toBe('echo `ls` x')
    expect(parseTextResponse('COMMAND: ``').command).toBe('``')
  })

  test('several times without a label give no time', () => {
    expect(parseTextResponse('10:00:00 or 11:00:00').time).toBeNull()
    expect(parseTextResponse('10:00:00, that is 10:00:00').time).toBe('10:00:00')
    expect(parseTextResponse('TIME: 1999:10:10').time).toBeNull()
  })

  test('any text can be parsed as a response', () => {
    fc.assert(
      fc.property(anyText(), (text) => {
        const read = parseTextResponse(`${text}\n${right}`)
        return read.command === command && read.time === time
      }),
    )
    const long = `${'> * _ # '.repeat(50_000)}\n${'COMMAND'.repeat(50_000)}\n${'`'.repeat(100_000)}`
    expect(parseTextResponse(long).followsFormat).toBe(false)
  })
})

const CALL = [{ name: 'write_file', arguments: '{}' }]

test.each([
  ['tool', 'thinking', [], 'length', true],
  ['tool', 'thinking', [], 'stop', false],
  ['tool', '', CALL, 'length', false],
  ['text', 'thinking', [], 'length', true],
  ['text', 'COMMAND: ls', [], 'length', false],
  ['text', 'TIME: 01:02:03', [], 'length', false],
  ['text', 'thinking', CALL, null, false],
] as const)('the %s response %j with calls %j that ended by %s: cut short is %s', (...row) => {
  const [kind, text, toolCalls, finishReason, cut] = row
  expect(isCutShort(kind, { text, toolCalls, finishReason })).toBe(cut)
})
