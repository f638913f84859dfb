import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isCutShort, parseTextResponse } from '../../../../src/domain/models/lite/text-tasks.ts'
import { anyText } from '../../../support/any-text.ts'

const command = `grep -rl 'a: b' . | sort`
const time = '12:05:59'
const right = `COMMAND: ${command}\nTIME: ${time}`

describe('a response', () => {
  test('a response in the requested form is parsed, after thoughts that a service left in', () => {
    expect(parseTextResponse(right)).toEqual({ command, time, followsFormat: true })
    expect(parseTextResponse(`\n${right}\r\n`)).toEqual({ command, time, followsFormat: true })
    const thoughts = '<think>COMMAND: ls\nTIME: 01:01:01</think>'
    expect(parseTextResponse(`${thoughts}\n${right}`)).toEqual({ command, time, followsFormat: true })
    const bold = `**COMMAND: ${command}**\n**TIME: ${time}**`
    expect(parseTextResponse(bold)).toEqual({ command, time, followsFormat: false })
  })

  const FENCE = '```'

  test.each([
    ['bold labels', `**COMMAND:** ${command}\n**TIME:** ${time}`],
    ['underlined labels', `__COMMAND:__ ${command}\n__TIME:__ ${time}`],
    ['labels in code', `\`COMMAND\`: \`${command}\`\n\`TIME\`: \`${time}\``],
    ['bold numbers', `**1. COMMAND:** ${command}\n**2. TIME: ${time}**`],
    ['a fence in a block quote', `> COMMAND:\n> ${FENCE}sh\n> ${command}\n> ${FENCE}\n> TIME: ${time}`],
    [
      'a fence in a block quote below the label',
      `COMMAND:\n> ${FENCE}\n> ${command}\n> ${FENCE}\nTIME: ${time}`,
    ],
    ['headings without a colon', `## COMMAND\n${command}\n## TIME\n${time}`],
    ['bold headings without a colon', `**Command**\n\n\`${command}\`\n\n**Time**\n\n\`${time}\``],
    ['indented values on their own lines', `COMMAND:\n\n    ${command}\n\nTIME:\n    ${time}`],
    ['lists below the labels', `- COMMAND:\n  - \`${command}\`\n- TIME:\n  - ${time}`],
    ['tildes below the label', `COMMAND:\n~~~sh\n${command}\n~~~\nTIME: ${time}`],
    ['a fence with a language on one line', `COMMAND: ${FENCE}bash ${command}${FENCE}\nTIME: ${time}`],
    ['a fence that begins with the command', `COMMAND: ${FENCE}${command}\n${FENCE}\nTIME: ${time}`],
    ['a table of labels, with a bar', `| COMMAND | ${command} |\n| TIME | ${time} |`],
    ['a table of labels', `| COMMAND | ${command.replace('|', '\\|')} |\n| TIME | ${time} |`],
    [
      'a table with labels at its head',
      `| COMMAND | TIME |\n|---|:-:|\n| ${command.replace('|', '\\|')} | ${time} |`,
    ],
    ['curly quotes', `COMMAND: “${command}”\nTIME: “${time}”`],
    ['a fence without labels', `Here you are:\n${FENCE}sh\n${command}\n${FENCE}\nIt is ${time}.`],
    ['empty labels after it', `${right}\n\nCOMMAND:\nTIME: of the puzzle`],
    ['bold code with a remark', `COMMAND: **\`${command}\`** (lists them)\nTIME: ${time}`],
    ['tags of code', `COMMAND: <code>${command}</code>\nTIME: <code>${time}</code>`],
    ['tags around labels', `<b>COMMAND:</b> ${command}<br><b>TIME:</b> ${time}`],
    ['code in brackets', `COMMAND: [\`${command}\`]\nTIME: [${time}]`],
    ['values in brackets', `COMMAND: [${command}]\nTIME: <${time}>`],
    ['escaped back quotes', `COMMAND: \\\`${command}\\\`\nTIME: \\\`${time}\\\``],
    ['escaped stars', `\\*\\*COMMAND:\\*\\* ${command}\n\\*\\*TIME: ${time}\\*\\*`],
    ['a label before code', `COMMAND \`${command}\`\nTIME \`${time}\``],
    ['values in LaTeX', `COMMAND: \\boxed{\\texttt{${command}}}\n\\text{TIME: } $\\boxed{${time}}$`],
    ['a console with output', `COMMAND:\n${FENCE}console\n$ ${command}\na.txt\n${FENCE}\nTIME: ${time}`],
    ['a prompt with a host', `COMMAND:\n${FENCE}\nme@host:~$ ${command}\na.txt\n${FENCE}\nTIME: ${time}`],
    ['lines of JSON', `"COMMAND": "${command}",\n"TIME": "${time}",`],
    ['an explanation after it', `${right}\n\nExplanation: COMMAND: grep finds the files. TIME: 1:00:00 less`],
    ['a sentence after it', `${right}\nThe COMMAND: line uses grep.\n- TIME: it is 01:01:01 less`],
    [
      'a correction after words',
      `COMMAND: ls\nTIME: 01:01:01\nWait: COMMAND: ${command}\nFinal TIME: ${time}`,
    ],
    ['sentences', `The command is \`${command}\`. The time is ${time}.`],
    ['other colons', `COMMAND∶ ${command}\nTIME﹕ 12∶05 : 59`],
    ...['/', '.', '·', '—', '-', '→', ';', 'and', '\\n'].map((sign): [string, string] => [
      `both on one line and ${sign} between`,
      `COMMAND: ${command}${/[.\\]/.test(sign) ? sign : ` ${sign}`} TIME: ${time}`,
    ]),
    ['both as code on one line', `COMMAND: \`${command}\`. **TIME:** \`${time}\``],
    ['other line ends', `COMMAND: ${command}\rTIME: ${time}`],
    ['entities for back quotes', `COMMAND: &#96;${command}&#96;\nTIME: &#x60;${time}&#x60;`],
    ['entities for quotes', `COMMAND: ${command.replaceAll("'", '&#39;')}\nTIME:&nbsp;${time}`],
    ['entities for tags', `&lt;COMMAND&gt;${command}&lt;/COMMAND&gt;\nTIME: ${time}`],
    ...['lists the files', 'which lists them.', 'to list all files', 'is the command', 'in this folder'].map(
      (words): [string, string] => [`code and "${words}"`, `COMMAND: \`${command}\` ${words}\nTIME: ${time}`],
    ),
    ['code behind a verb', `COMMAND: Use \`${command}\`\nTIME: ${time}`],
    ['a block of YAML', `command: |\n  ${command}\ntime: ${time}`],
    ['a list of JSON', JSON.stringify({ tasks: [{ COMMAND: command }, { TIME: time }] })],
    ['a dictionary of Python', `{'COMMAND': "${command}", 'TIME': '${time}'}`],
    ['underlined headings', `COMMAND\n-------\n${command}\n\nTIME\n====\n${time}`],
    ['comments in a fence', `COMMAND:\n${FENCE}sh\n#!/bin/sh\n# list\n${command}\n${FENCE}\nTIME: ${time}`],
    ['the name of a shell before a fence', `COMMAND: bash\n${FENCE}\n${command}\n${FENCE}\nTIME: ${time}`],
    ['words before a fence', `COMMAND: here it is:\n${FENCE}\n${command}\n${FENCE}\nTIME: ${time}`],
    ['the prompt of a folder', `COMMAND: ~$ ${command}\nTIME: ${time}`],
  ])('a response with %s is parsed', (_name, text) => {
    expect(parseTextResponse(text)).toMatchObject({ command, time })
  })

  test.each([
    ['begins and ends with one', 'COMMAND: `which ls` `pwd`', '`which ls` `pwd`'],
    ['begins with one in a fence', `COMMAND: ${FENCE}\`which ls\` -l${FENCE}`, '`which ls` -l'],
    ['is two substitutions', 'COMMAND: `cat f`; `cat g`', '`cat f`; `cat g`'],
    ['ends with a star in a list of stars', '* COMMAND: cat a/*', 'cat a/*'],
    ['looks for empty tags', "COMMAND: grep -l '<p></p>' *.html", "grep -l '<p></p>' *.html"],
    ['begins and ends with quotes', `COMMAND: "my tool" -x "a b"`, `"my tool" -x "a b"`],
    [
      'has escaped quotes within quotes',
      String.raw`COMMAND: "grep -c \"a\\.b\" f"`,
      String.raw`grep -c "a\.b" f`,
    ],
    ['has quotes in JSON', JSON.stringify({ command: `sed -n '/"\\./p' f` }), `sed -n '/"\\./p' f`],
    ['reads a script', `COMMAND: ${FENCE}sh run.sh${FENCE}`, 'sh run.sh'],
    ['reads a script behind a fence', `COMMAND:\n${FENCE}bash ./run\n${FENCE}`, 'bash ./run'],
    ['begins with a substitution', 'COMMAND: $(which ls) -l', '$(which ls) -l'],
    ['begins with a substitution in code', 'COMMAND: `$(which ls) -l`', '$(which ls) -l'],
    ['is a group', 'COMMAND: { ls; pwd; }', '{ ls; pwd; }'],
    ['is the name of a shell', 'COMMAND: sh\n\nIt reads.', 'sh'],
    ['is a word on the line of a fence', `COMMAND:\n${FENCE}pwd\n${FENCE}`, 'pwd'],
    ['is one letter in quotes', 'COMMAND: "w"', 'w'],
  ])('a command that %s is kept', (_name, text, kept) => {
    expect(parseTextResponse(text).command).toBe(kept)
  })

  test.each([
    'I would use a command: ls',
    'The subcommand: ls',
    `COMMAND: ${FENCE}sh\n${FENCE}`,
    `COMMAND:\n${FENCE}\n\n${FENCE}`,
    `${FENCE}\nls\n${FENCE}\n${FENCE}\npwd\n${FENCE}`,
  ])('the response %j has no command', (text) => {
    expect(parseTextResponse(text).command).toBeNull()
  })

  test('several times without a label give no time', () => {
    expect(parseTextResponse('10:00:00 or 11:00:00').time).toBeNull()
    expect(parseTextResponse('10:00:00, that is 10:00:00').time).toBe('10:00:00')
    for (const text of ['TIME: 1999:10:10', '']) expect(parseTextResponse(text).time).toBeNull()
  })

  test('any text can be parsed as a response', () => {
    fc.assert(
      fc.property(anyText(), (text) => {
        const read = parseTextResponse(`${text}\n${right}`)
        return read.command === command && read.time === time
      }),
    )
    const long = `${'> * _ # '.repeat(50_000)}\n${'COMMAND'.repeat(50_000)}\n${'`'.repeat(100_000)}\nCOMMAND: ${'"'.repeat(100_000)}`
    const runs = ['`', '~~', '**`', '<code>', '<COMMAND>', '$\\\\text'].map(
      (mark) => `COMMAND: **\`${mark.repeat(50_000)}x`,
    )
    for (const each of [long, ...runs]) expect(parseTextResponse(each).followsFormat).toBe(false)
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
