import { describe, expect, test } from 'vitest'
import { thoughtFilter, withoutThoughts } from '../../../src/domain/answers/thoughts.ts'

function filtered(chunks: readonly string[], isHeld = false): { text: string; leaked: boolean } {
  const filter = thoughtFilter(isHeld)
  let text = ''
  // Nothing is read after a leak.
  for (const chunk of chunks) if (!filter.hasLeaked) text += filter.push(chunk)
  if (!filter.hasLeaked) text += filter.end()
  return { text, leaked: filter.hasLeaked }
}

const shown = (text: string): string => filtered([text]).text

/** The same text whole, by code unit, and in two parts at every place. */
function splits(text: string): string[][] {
  const parts = Array.from(text, (_unit, at) => [text.slice(0, at), text.slice(at)])
  return [[text], text.split(''), ...parts]
}

const HARMONY = '<|channel|>analysis<|message|>'
const FINAL = '<|start|>assistant<|channel|>final<|message|>'

describe('thoughts at the start of an answer', () => {
  test.each([
    ['<think>\nhm\n</think>\n\nThe answer.', 'The answer.'],
    ['\n <think></think>\nAnswer.', 'Answer.'],
    ['<think>a</think>\n<think>b</think>\nAnswer.', 'Answer.'],
    ['<thinking>a < b, <think> is a tag</thinking> Answer.', 'Answer.'],
    ['</think>\n\nAnswer.', 'Answer.'],
    ['<think>İİİ</think>Answer.', 'Answer.'],
    ['<think>never closed', ''],
    ['<think>only</think>\n', ''],
    ['<think>a</think>Answer.\n</think>\nMore.', 'Answer.\n</think>\nMore.'],
    ['[THINK]hm[/THINK]Answer.', 'Answer.'],
    ['◁think▷hm◁/think▷Answer.', 'Answer.'],
    [`${HARMONY}hm<|end|>${FINAL}Answer.`, 'Answer.'],
    [`${HARMONY}hm<|channel|>final<|message|>Answer.`, 'Answer.'],
    [`<|start|>assistant${HARMONY}a<|end|>${HARMONY}b<|end|>${FINAL}Answer.`, 'Answer.'],
    [`<|channel|>commentary to=functions.a<|message|>{}<|call|>${FINAL}Answer.`, 'Answer.'],
    ['<|channel|>final<|message|>Answer.', 'Answer.'],
    [`${HARMONY}hm<|end|>Answer.<|return|>`, 'Answer.'],
    [`${HARMONY}hm<|end|><|start|>assistant<|message|>Answer.`, 'Answer.'],
    [`${HARMONY}hm<|end|><|start|>assistant${HARMONY}`, ''],
    [`${HARMONY}hm<|channel|>final <|constrain|>json<|message|>{"a":1}`, '{"a":1}'],
    [`${HARMONY}hm<|end|>${FINAL.replace('<|message', ' json<|constrain|>json<|message')}{}`, '{}'],
    ['<|message|>Answer.<|end|>\n', 'Answer.'],
    ['<|im_start|>assistant\nAnswer.<|im_end|>', 'Answer.'],
    ['<start_of_turn>model\n<think>hm</think><|assistant|>Answer.', 'Answer.'],
    ['<|start_header_id|>assistant<|end_header_id|>\n\nAnswer.<|eot_id|>', 'Answer.'],
    ['<think>hm</think><|begin_of_box|>Answer.<|end_of_box|>', 'Answer.'],
    ['<|begin_of_thought|>hm<|end_of_thought|>\n<|begin_of_solution|>Answer.<|end_of_solution|>', 'Answer.'],
    ['<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>Answer.<|END_RESPONSE|>', 'Answer.'],
    ['<think>hm</think>\n<answer>\nAnswer.</answer>\n', 'Answer.'],
    ['<think>hm</think><response>Answer.</response>', 'Answer.'],
    ['<seed:think>hm</seed:think>Answer.', 'Answer.'],
    ['<longcat_think>hm</longcat_think>Answer.', 'Answer.'],
    ['<think:opensource>hm</think:opensource>Answer.', 'Answer.'],
    ['<reasoning>hm</reasoning>Answer.', 'Answer.'],
    ['<Thinking>hm</thinking>Answer.', 'Answer.'],
    ['<thought>hm</thought>Answer.', 'Answer.'],
    ['<think\tx="1">hm</think >Answer.', 'Answer.'],
    ['< think >hm</ think >Answer.', 'Answer.'],
    ['<think />\n<think>hm <think/></think>Answer.', 'Answer.'],
    [
      `<think>a</think>\n[THINK]b[/THINK] ◁think▷c◁/think▷<reasoning>d</reasoning>${HARMONY}e<|end|>${FINAL}Answer.`,
      'Answer.',
    ],
    ['<think>a\n<think a="b">b\n</think>\n<think>c</think></think>\nAnswer.', 'Answer.'],
    ['<think>What do <think> and\n<think> mean?</think>\nTags.\nReally.', 'Tags.\nReally.'],
    [
      '<think>Hm, <think>?</think>Write <think> and </think> around it.',
      'Write <think> and </think> around it.',
    ],
    ['<think>a</reasoning>b[/THINK]c</think>Answer.', 'Answer.'],
    ['<think>\n```\na</think>\n```\nAnswer.\n```', '```\nAnswer.\n```'],
    ['<think>a <think> b</think>Answer </think>.', 'Answer </think>.'],
  ])('the thoughts of %j are removed, wherever the chunks are split', (text, expected) => {
    for (const chunks of splits(text)) expect(filtered(chunks)).toEqual({ text: expected, leaked: false })
  })

  test.each([
    ['<think>It ends with `</think>`, hm.</think>Answer.', 'Answer.'],
    ['<think>`<think>` opens</think>Answer.', 'Answer.'],
    ['[THINK]`[/THINK]`[/THINK]Answer.', 'Answer.'],
    ['<think>It ends with `</think>`', ''],
    ['<think>A ` is open.</think>Answer.', 'Answer.'],
    ['<think>`` is open ` too.\n</think>Answer with `code`.', 'Answer with `code`.'],
    ['<think>\n```\nnever closed\n</think>\nAnswer.\n', 'Answer.\n'],
  ])('a mark between backquotes does not end the thoughts of %j', (text, expected) => {
    for (const chunks of splits(text)) expect(filtered(chunks)).toEqual({ text: expected, leaked: false })
  })
})

describe('marks at the end of an answer', () => {
  test.each([
    '<|return|>',
    '<|end|>',
    '<|im_end|>',
    '<|eot_id|>',
    '<|endoftext|>',
    '</s>',
    '<end_of_turn>',
    '<eos>',
    '<｜end▁of▁sentence｜>\n',
    '<|observation|>',
    '<|im_end|>\n<|endoftext|>\n\n',
  ])('the mark %j is removed, wherever the chunks are split', (mark) => {
    for (const chunks of splits(`a < b </i>\nAnswer.${mark}`))
      expect(filtered(chunks)).toEqual({ text: 'a < b </i>\nAnswer.', leaked: false })
  })

  test.each([
    'The mark <|im_end|> ends a turn.',
    'It is `</s>`',
    '```\n<|end|>\n```\n',
    'Two <|end|>\n</s> marks, and </s',
    'Strike: <s>old</s>',
    '```html\n<s>x</s>',
    'GLM ends a turn with <|user|> or <|observation|>',
    'As XML:\n<note>\n<response>ok</response>',
  ])('the answer %j has none', (text) => {
    for (const chunks of splits(text)) expect(filtered(chunks)).toEqual({ text, leaked: false })
  })
})

describe('tags that are text', () => {
  test.each([
    'The tag `<think>` opens thoughts, `</think>` closes them.',
    'Write <think> and </think> around thoughts.',
    'Answer.</think> is a tag\n',
    'Thoughts end with </think>\n',
    'Thoughts end with "</think>".\n',
    'They end with **</think>**, then answer.\n',
    '思考以</think>标签结束。\n',
    'An example:\n\n```xml\n<think>\nhm\n</think>\n```\n',
    'An example:\n~~~\n</think>\n~~~\nDone.',
    'Thoughts begin with\n<think>\nand end with\n</think>\nalways.',
    'Code:\n\n    </think>\n',
    'Magistral writes [THINK] and [/THINK], Kimi ◁think▷ and ◁/think▷.',
    'gpt-oss writes <|channel|>analysis<|message|> and <|channel|>final<|message|>.',
    'Use `<seed:think>` or\n\n```\n<reasoning>\n</reasoning>\n```\n',
    '`<think>` is a tag',
    '```xml\n<think>\n</think>\n```\n',
    'Code:\n```js\n```xml\n</think>\n```\n',
    'Not code: ```</think>``` but\n```</think>```\n',
    '<thinker>hm</thinker>',
    '<thoughtful person> says',
    '[Think](https://example.com) is a link.',
    `<think ${'a'.repeat(300)}>`,
    '<|channel|>other',
    '◁ left',
    '<thin ice',
    '\n\n  indented',
    '',
  ])('the answer %j stays as it is', (text) => {
    for (const chunks of splits(text)) expect(filtered(chunks)).toEqual({ text, leaked: false })
  })

  test('an answer without tags is returned immediately', () => {
    const filter = thoughtFilter()
    expect(['Hello', ' ', 'world', '\n', 'a <b'].map((chunk) => filter.push(chunk)).join('|')).toBe(
      'Hello| |world|\n|a <b',
    )
  })
})

describe('thoughts without an opening tag', () => {
  test.each([
    'I guess.\n</think>\n\nAnswer.',
    'I guess.\n</think>',
    'a\n\n  </think>  \r\nAnswer.',
    'I guess.\n[/THINK]\nAnswer.',
    'I guess.\n◁/think▷\nAnswer.',
    'I guess.\n[BEGIN FINAL RESPONSE]\nAnswer.',
    'I guess.\n</seed:think >\nAnswer.',
    'Like `<think>`.\n</think>\nAnswer.',
    'I guess.</think>\n\nAnswer',
  ])('the thoughts of %j are known when their end arrives on a line of its own', (text) => {
    expect(filtered([text]).leaked).toBe(true)
    expect(filtered(text.split('')).leaked).toBe(true)
    expect(filtered(text.split('')).text).not.toContain('Answer')
  })

  test.each(['I guess.</think>Answer.\nMore.', 'Hm, 4.</think>**4**\nMore.'])(
    'the thoughts of %j are known with the line of their end',
    (text) => {
      const [line = ''] = text.split(/(?<=\n)/)
      for (const chunks of splits(text)) expect(filtered(chunks)).toEqual({ text: line, leaked: true })
    },
  )

  test.each([
    ['I guess.\n</think>\n\nAnswer.', 'Answer.'],
    ['I guess.</think>Answer.', 'Answer.'],
    ['The tag `</think>` ends.\n</think>\nAnswer.', 'Answer.'],
    ['Its name is `x`</think>Answer.', 'Answer.'],
    ['<think>hm</think>Answer.', 'Answer.'],
    ['An answer without thoughts.', 'An answer without thoughts.'],
    ['Write `</think>` here.', 'Write `</think>` here.'],
    ['hm</think>Answer.\n</think>\nMore.', 'Answer.\n</think>\nMore.'],
    ['hm[/THINK]Answer.', 'Answer.'],
    ['Hm [1].\n[BEGIN FINAL RESPONSE]\nAnswer [1].\n[END FINAL RESPONSE]\n<|end|>', 'Answer [1].\n'],
    ['hm◁/think▷<think>hm</think>Answer.', 'Answer.'],
    [`hm<|end|>${FINAL}Answer.`, 'Answer.'],
    ['What does <think> mean?\n</think>\nAnswer.', 'Answer.'],
    ['The tag ```</think>``` ends.</think>Answer.', 'Answer.'],
    ['An answer that stops.<|end|>', 'An answer that stops.'],
    ['An open fence:\n```\nhm\n</think>\nAnswer.', 'Answer.'],
  ])('the text %j of a known model is held until its thoughts end', (text, expected) => {
    expect(withoutThoughts(text)).toBe(expected)
    for (const chunks of splits(text))
      expect(filtered(chunks, true)).toEqual({ text: expected, leaked: false })
  })
})

test('long thoughts are read in linear time', () => {
  const long = '`'.repeat(200_000) + '<think> '.repeat(50_000)
  expect(shown(`x\n${long}\n`).length).toBe(long.length + 3)
  expect(withoutThoughts(`x${long}\n</think>\nA`)).toBe('A')
  expect(shown(`<think>${'` `` ``` '.repeat(50_000)}${long}`)).toBe('')
  expect(shown(`<think>${'<think a'.repeat(50_000)}</think>A`)).toBe('A')
  const chunks = `<think>${'word ` <b [c'.repeat(20_000)}</think>A`.match(/.{1,20}/g) ?? []
  expect(filtered(chunks).text).toBe('A')
  expect(filtered(['A', ...Array.from({ length: 100_000 }, () => '<|end|> ')]).text).toBe('A')
})
