import { describe, expect, test } from 'vitest'
import { callFilter } from '../../../src/domain/answers/calls-in-text.ts'

function read(chunks: readonly string[]): { text: string; calls: string[][] } {
  const filter = callFilter((name) => name === 'search')
  const text = chunks.map((chunk) => filter.push(chunk)).join('') + filter.end()
  return { text, calls: filter.calls.map((call) => [call.name, call.arguments]) }
}

/** The same text whole, by code unit, and in two parts at every place. */
function splits(text: string): string[][] {
  const parts = Array.from(text, (_unit, at) => [text.slice(0, at), text.slice(at)])
  return [[text], text.split(''), ...parts]
}

const CALL = '<tool_call>\n{"name": "search", "arguments": {"query": "rust"}}\n</tool_call>'
const RUST = ['search', '{"query":"rust"}']

describe('tool calls in the text of an answer', () => {
  test.each<[string, string, string[][]]>([
    [CALL, '', [RUST]],
    [`I look.\n${CALL}\n${CALL}`, 'I look.\n\n', [RUST, RUST]],
    [CALL.replace('arguments', 'parameters'), '', [RUST]],
    [CALL.replace('{"query": "rust"}', '"{}"'), '', [['search', '{}']]],
    [CALL.replace('\n</tool_call>', ''), '', [RUST]],
    [
      '<tool_call>\n<function=search>\n<parameter=query>\nrust\n</parameter>\n</function>\n</tool_call>',
      '',
      [RUST],
    ],
    ['<tool_call>search\n<arg_key>query</arg_key>\n<arg_value>rust</arg_value>\n</tool_call>', '', [RUST]],
    ['<tool_call>search</tool_call>', '', [['search', '{}']]],
    ['[TOOL_CALLS]search[ARGS]{"query":"rust"}', '', [RUST]],
    ['Hm.<|tool_call|>[{"name":"search","arguments":{"query":"rust"}}]', 'Hm.', [RUST]],
    ['<|tool_call>call:search{query:<|"|>rust<|"|>}<tool_call|>', '', [RUST]],
    [
      '<function=search>{"query": "rust"}</function><function=search>{}</function>',
      '',
      [RUST, ['search', '{}']],
    ],
    [
      '<function_calls><invoke name="search"><parameter name="query">rust</parameter></invoke></function_calls>',
      '',
      [RUST],
    ],
    [
      '<｜tool▁calls▁begin｜>function<｜tool▁sep｜>search\n```json\n{"query":"rust"}\n```<｜tool▁calls▁end｜>',
      '',
      [RUST],
    ],
    [
      '<|tool_calls_section_begin|>search:0<|a|>{"query":"rust"}search:1<|a|>{}<|tool_calls_section_end|>',
      '',
      [RUST, ['search', '{}']],
    ],
    ['\n{"type": "function", "name": "search", "parameters": {"query": "rust"}}', '', [RUST]],
    ['```json\n{"name": "search", "arguments": {"query": "rust"}}\n```', '', [RUST]],
    [
      '[{"name": "search", "arguments": {"query": "rust"}}, {"name": "search", "arguments": {}}]',
      '',
      [RUST, ['search', '{}']],
    ],
    [
      '<｜DSML｜function_calls>\n<｜DSML｜invoke name="search">\n<｜DSML｜parameter name="query" string="true">rust</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
      '',
      [RUST],
    ],
    [
      '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "search", "parameters": {"query": "rust"}}]<|END_ACTION|>',
      '',
      [RUST],
    ],
    ['Hm.<|tool_call_start|>[search(query="rust")]<|tool_call_end|>', 'Hm.', [RUST]],
    [
      `[search(query='rust'), search(query="a, (b) = [c]", sources=None, limit=5)]`,
      '',
      [RUST, ['search', '{"query":"a, (b) = [c]","sources":null,"limit":5}']],
    ],
  ])('the calls in %j are read', (text, shown, calls) => {
    for (const chunks of splits(text)) expect(read(chunks)).toEqual({ text: shown, calls })
  })

  test.each([
    'a <b> < tool <tool_cal',
    CALL.replace('search', 'other'),
    'The tag <tool_call> begins a call, </tool_call> ends it.',
    `Hermes writes \`${CALL}\`.`,
    'Qwen writes <tool_call>\nsearch and the parameters.',
    `<tool_call>${'x'.repeat(30_000)}`,
    `<tool_call>${'x'.repeat(19_000)}.`,
    'Mistral writes [TOOL_CALLS] before search.',
    'Claude writes <function_calls>, and calls of search {…} in them.',
    '{"name": "dash", "usage": "search {query}"}',
    '{"name": "search", "description": "Searches."}',
    `{${' '.repeat(20)}"name": "search", "arguments": {}}`,
    '{"name": "other", "parameters": {}}',
    '{"stories": ["search"], "and": "so on"}',
    '```json\n{"name": "other", "arguments": {}}\n```\nIs a call.',
    '```sh\nsearch(1)\n```',
    '[search](https://example.com) finds items.',
    '[other(query="rust")]',
    '[1] and [search]',
    `{"name": "${'x'.repeat(30_000)}`,
  ])('the text %j stays as it is', (text) => {
    for (const chunks of text.length > 1_000 ? [[text], text.split('')] : splits(text))
      expect(read(chunks)).toEqual({ text, calls: [] })
  })
})
