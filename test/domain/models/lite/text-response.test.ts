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

  const FENCE = '```'

  test.each([
    ['bold labels', `**COMMAND:** ${command}\n**TIME:** ${time}`],
    ['bold labels with the colon outside', `**COMMAND**: ${command}\n**TIME**: ${time}`],
    ['bold lines', `**COMMAND: ${command}**\n**TIME: ${time}**`],
    ['bold labels and values', `**COMMAND:** **${command}**\n**TIME:** **${time}**`],
    ['bold values', `COMMAND: **${command}**\nTIME: **${time}**`],
    ['bold labels and code', `**COMMAND:** \`${command}\`\n**TIME:** \`${time}\``],
    ['bold lines of code', `**COMMAND: \`${command}\`**\n**TIME: \`${time}\`**`],
    ['bold code', `COMMAND: **\`${command}\`**\nTIME: **\`${time}\`**`],
    ['underlined labels', `__COMMAND:__ ${command}\n__TIME:__ ${time}`],
    ['underlined lines', `__COMMAND: ${command}__\n__TIME: ${time}__`],
    ['italic labels', `*COMMAND:* ${command}\n_TIME_: ${time}`],
    ['italic lines', `*COMMAND: ${command}*\n_TIME: ${time}_`],
    ['bold italic lines', `***COMMAND: ${command}***\n**_TIME: ${time}_**`],
    ['marks closed by halves', `***COMMAND:** ${command}*\n**_TIME:_ ${time}**`],
    ['labels in small letters', `command: ${command}\ntime: ${time}`],
    ['labels with a capital', `Command: ${command}\nTime: ${time}`],
    ['full-width colons', `COMMAND：${command}\nTIME：${time}`],
    ['a time of full-width digits', `COMMAND: ${command}\nTIME： １２：０５：５９`],
    ['equals signs', `COMMAND = ${command}\nTIME = ${time}`],
    ['no space', `COMMAND:${command}\nTIME:${time}`],
    ['a space before the colon', `COMMAND : ${command}\nTIME : ${time}`],
    ['labels in code', `\`COMMAND\`: \`${command}\`\n\`TIME\`: \`${time}\``],
    ['lines of code', `\`COMMAND: ${command}\`\n\`TIME: ${time}\``],
    ['fences on each line', `${FENCE}COMMAND: ${command}${FENCE}\n${FENCE}TIME: ${time}${FENCE}`],
    ['labels in brackets', `[COMMAND]: ${command}\n[TIME]: ${time}`],
    ['a list', `- COMMAND: \`${command}\`\n- TIME: \`${time}\``],
    ['a list of stars', `* COMMAND: ${command}\n* TIME: ${time}`],
    ['a list of bold labels', `* **COMMAND:** ${command}\n+ **TIME:** ${time}`],
    ['bullets', `• COMMAND: ${command}\n• TIME: ${time}`],
    ['numbers', `1. COMMAND: ${command}\n2. TIME: ${time}`],
    ['numbers in parentheses', `(1) COMMAND: ${command}\n2) TIME: ${time}`],
    ['bold numbers', `**1. COMMAND:** ${command}\n**2. TIME: ${time}**`],
    ['block quotes', `> COMMAND: ${command}\n> TIME: ${time}`],
    ['block quotes in a block quote', `> > **COMMAND: ${command}**\n>> TIME: ${time}`],
    ['a fence in a block quote', `> COMMAND:\n> ${FENCE}sh\n> ${command}\n> ${FENCE}\n> TIME: ${time}`],
    ['values in block quotes', `COMMAND:\n> ${command}\n\nTIME:\n> ${time}`],
    [
      'a fence in a block quote below the label',
      `COMMAND:\n> ${FENCE}\n> ${command}\n> ${FENCE}\nTIME: ${time}`,
    ],
    ['spaces within stars', `** COMMAND: ${command} **\n** TIME: ** ${time}`],
    ['headings', `### Command:\n\n${FENCE}bash\n${command}\n${FENCE}\n\n### Time:\n${time}`],
    ['headings without a colon', `## COMMAND\n${command}\n## TIME\n${time}`],
    ['bold headings without a colon', `**Command**\n\n\`${command}\`\n\n**Time**\n\n\`${time}\``],
    ['values on their own lines', `COMMAND:\n${command}\n\nTIME:\n\n${time}`],
    ['indented values on their own lines', `COMMAND:\n\n    ${command}\n\nTIME:\n    ${time}`],
    ['lists below the labels', `- COMMAND:\n  - \`${command}\`\n- TIME:\n  - ${time}`],
    ['a fence around all of it', `${FENCE}\n${right}\n${FENCE}`],
    ['tildes around all of it', `~~~text\n${right}\n~~~`],
    ['a fence behind the label', `COMMAND: ${FENCE}sh\n${command}\n${FENCE}\nTIME: ${time}`],
    [
      'fences below the labels',
      `COMMAND:\n${FENCE}\n${command}\n${FENCE}\nTIME:\n${FENCE}\n${time}\n${FENCE}`,
    ],
    ['tildes below the label', `COMMAND:\n~~~sh\n${command}\n~~~\nTIME: ${time}`],
    ['a long fence', `COMMAND:\n\`${FENCE}\n${command}\n\`${FENCE}\nTIME: ${time}`],
    ['a fence on one line', `COMMAND: ${FENCE}${command}${FENCE}\nTIME: ${FENCE}${time}${FENCE}`],
    ['a spaced fence on one line', `COMMAND: ${FENCE} ${command} ${FENCE}\nTIME: ${time}`],
    ['a fence with a language on one line', `COMMAND: ${FENCE}bash ${command}${FENCE}\nTIME: ${time}`],
    ['a bold fence on one line', `**COMMAND: ${FENCE}${command}${FENCE}**\nTIME: ${time}`],
    ['a fence on one line below the label', `COMMAND:\n${FENCE}${command}${FENCE}\nTIME: ${time}`],
    ['a fence that begins with the command', `COMMAND: ${FENCE}${command}\n${FENCE}\nTIME: ${time}`],
    ['a fence that ends with the command', `COMMAND: ${FENCE}\n${command}${FENCE}\nTIME: ${time}`],
    ['a fence that never ends', `COMMAND:\n${FENCE}sh\n${command}\n\nTIME: ${time}`],
    ['a bold fence', `**COMMAND:\n${FENCE}sh\n${command}\n${FENCE}**\nTIME: ${time}`],
    ['double back quotes', `COMMAND: \`\` ${command} \`\`\nTIME: ${time}`],
    ['code with a remark', `COMMAND: \`${command}\` (lists them)\nTIME: \`${time}\`.`],
    ['double quotes', `COMMAND: "${command}"\nTIME: "${time}"`],
    ['single quotes', `COMMAND: '${command}'\nTIME: '${time}'`],
    ['curly quotes', `COMMAND: “${command}”\nTIME: “${time}”`],
    ['quoted lines', `"COMMAND: ${command}"\n"TIME: ${time}"`],
    ['quoted code', `COMMAND: "\`${command}\`"\nTIME: ${time}`],
    ['JSON', JSON.stringify({ COMMAND: command, TIME: time })],
    ['JSON on several lines', JSON.stringify({ command, time }, null, 2)],
    ['both on one line', `COMMAND: ${command} TIME: ${time}`],
    ['words before the labels', `Task 1: COMMAND: ${command}\nMy final TIME: ${time}`],
    ['a fence without labels', `Here you are:\n${FENCE}sh\n${command}\n${FENCE}\nIt is ${time}.`],
    ['two fences without labels', `${FENCE}sh\n${command}\n${FENCE}\nand\n${FENCE}\n${time}\n${FENCE}`],
    ['a first try', `COMMAND: ls\nTIME: 01:01:01\nNo, wait.\n${right}`],
    ['empty labels after it', `${right}\n\nCOMMAND:\nTIME: of the puzzle`],
    ['a prompt sign', `COMMAND: $ ${command}\nTIME: ${time} (true time)`],
    ['a prompt sign in a fence', `COMMAND:\n${FENCE}console\n$ ${command}\n${FENCE}\nTIME: ${time}`],
    ['a hard break', `COMMAND: ${command}\\\nTIME: ${time}`],
    ['Windows line ends', `**COMMAND: ${command}**\r\n**TIME: ${time}**\r\n`],
    ['prose around it', `Sure!\n${right}\nHope this helps.`],
    ['code with a comment', `COMMAND: \`${command}\` # lists them\nTIME: ${time}`],
    ['code with a dash and a remark', `COMMAND: \`${command}\` - lists them\nTIME: \`${time}\` — true time`],
    ['code with a comma and a remark', `COMMAND: \`${command}\`, which lists them\nTIME: ${time}`],
    ['bold code with a remark', `COMMAND: **\`${command}\`** (lists them)\nTIME: ${time}`],
    ['tags of code', `COMMAND: <code>${command}</code>\nTIME: <code>${time}</code>`],
    ['tags in tags', `COMMAND: <pre><code class="sh">${command}</code></pre>\nTIME: <b>${time}</b>`],
    ['tags around labels', `<b>COMMAND:</b> ${command}<br><b>TIME:</b> ${time}`],
    ['tags around lines', `<p>COMMAND: <code>${command}</code></p>\n<p>TIME: ${time}</p>`],
    ['tags named like the labels', `<COMMAND>${command}</COMMAND>\n<TIME>${time}</TIME>`],
    ['such tags on their own lines', `<command>\n${command}\n</command>\n<time>\n${time}\n</time>`],
    ['brackets named like the labels', `[COMMAND]${command}[/COMMAND]\n[TIME]${time}[/TIME]`],
    ['code in brackets', `COMMAND: [\`${command}\`]\nTIME: [${time}]`],
    ['code in parentheses and braces', `COMMAND: (\`${command}\`)\nTIME: {${time}}`],
    ['values in brackets', `COMMAND: [${command}]\nTIME: <${time}>`],
    ['braces around lines', `{COMMAND: ${command}}\n{TIME: ${time}}`],
    ['escaped back quotes', `COMMAND: \\\`${command}\\\`\nTIME: \\\`${time}\\\``],
    ['escaped stars', `\\*\\*COMMAND:\\*\\* ${command}\n\\*\\*TIME: ${time}\\*\\*`],
    ['zero-width spaces', `\u200bCOM\u200bMAND: \ufeff${command}\u200b\n\u200bTIME:\u200b${time}`],
    ['no-break spaces', `\u00a0COMMAND\u00a0:\u00a0${command.replaceAll(' ', '\u00a0')}\nTIME:\u202f${time}`],
    ['rows of a table', `| COMMAND | ${command} |\n| **TIME** | \`${time}\` |`],
    ['columns of a table', `| COMMAND | TIME |\n|---|---|\n| \`${command.replace('|', '\\|')}\` | ${time} |`],
    ['dashes', `COMMAND - ${command}\nTIME — ${time}`],
    ['arrows', `COMMAND → ${command}\nTIME -> ${time}`],
    ['other signs', `COMMAND => ${command}\nTIME := ${time}`],
    ['two colons', `COMMAND:: ${command}\nTIME:: ${time}`],
    ['labels in marks alone', `**COMMAND** ${command}\n[TIME] ${time}`],
    ['a label before code', `COMMAND \`${command}\`\nTIME \`${time}\``],
    ['a remark in the label', `COMMAND (one line): ${command}\nTIME (24 h): ${time}`],
    ['LaTeX boxes', `\\boxed{COMMAND: ${command}}\n$\\boxed{\\text{TIME: ${time}}}$`],
    ['values in LaTeX', `COMMAND: \\boxed{\\texttt{${command}}}\n\\text{TIME: } $\\boxed{${time}}$`],
    ['a fence right before the next label', `COMMAND: ${FENCE}${command}${FENCE}TIME: ${time}`],
    ['code right before the next label', `COMMAND: \`${command}\`TIME: \`${time}\``],
    ['a console with output', `COMMAND:\n${FENCE}console\n$ ${command}\na.txt\n${FENCE}\nTIME: ${time}`],
    ['a prompt with a host', `COMMAND:\n${FENCE}\nme@host:~$ ${command}\na.txt\n${FENCE}\nTIME: ${time}`],
    ['JSON in JSON', JSON.stringify({ answer: { COMMAND: command, TIME: time } })],
    ['lines of JSON', `"COMMAND": "${command}",\n"TIME": "${time}",`],
    ['low quotes', `COMMAND: „${command}“\nTIME: ‹${time}›`],
    ['an explanation after it', `${right}\n\nExplanation: COMMAND: grep finds the files. TIME: 1:00:00 less`],
    ['a sentence after it', `${right}\nThe COMMAND: line uses grep.\n- TIME: it is 01:01:01 less`],
    ['a list after it', `${right}\n\n- COMMAND: it lists the files.\n- COMMAND - a list`],
    [
      'a correction after words',
      `COMMAND: ls\nTIME: 01:01:01\nWait: COMMAND: ${command}\nFinal TIME: ${time}`,
    ],
    ['a word for a sign', `COMMAND is ${command}\nTIME is ${time}`],
    ['a word for a sign before code', `**COMMAND** is \`${command}\`.\n**TIME** is ${time}.`],
    ['a word and a colon', `The COMMAND is: ${command}\nThe TIME is: ${time}`],
    ['sentences', `The command is \`${command}\`. The time is ${time}.`],
    ['a colon and an equals sign', `COMMAND: = ${command}\nTIME: = ${time}`],
    ['other colons', `COMMAND∶ ${command}\nTIME﹕ 12∶05 : 59`],
    ['a tab for a sign', `COMMAND\t${command}\nTIME\t${time}`],
    ['a space for a sign', `COMMAND ${command}\nTIME ${time}`],
    ['numbers behind the labels', `COMMAND 1: ${command}\nTIME #2: ${time}`],
    ...['/', '.', '·', '—', '-', '→', ';', 'and', '\\n'].map((sign): [string, string] => [
      `both on one line and ${sign} between`,
      `COMMAND: ${command}${/[.\\]/.test(sign) ? sign : ` ${sign}`} TIME: ${time}`,
    ]),
    ['both as code on one line', `COMMAND: \`${command}\`. **TIME:** \`${time}\``],
    ['both in brackets on one line', `[COMMAND: ${command}] [TIME: ${time}]`],
    ['other line ends', `COMMAND: ${command}\rTIME: ${time}`],
    ['entities for back quotes', `COMMAND: &#96;${command}&#96;\nTIME: &#x60;${time}&#x60;`],
    ['entities for quotes', `COMMAND: ${command.replaceAll("'", '&#39;')}\nTIME:&nbsp;${time}`],
    ['entities in tags', `COMMAND: <code>${command.replaceAll("'", '&apos;')}</code>\nTIME: ${time}`],
    ['entities for tags', `&lt;COMMAND&gt;${command}&lt;/COMMAND&gt;\nTIME: ${time}`],
    ...['lists the files', 'which lists them.', 'to list all files', 'is the command', 'in this folder'].map(
      (words): [string, string] => [`code and "${words}"`, `COMMAND: \`${command}\` ${words}\nTIME: ${time}`],
    ),
    ['code behind a verb', `COMMAND: Use \`${command}\`\nTIME: ${time}`],
    ['a block of YAML', `command: |\n  ${command}\ntime: ${time}`],
    ['a folded block of YAML', `${FENCE}yaml\nCOMMAND: >-\n  ${command}\nTIME: "${time}"\n${FENCE}`],
    ['a list of JSON', JSON.stringify({ tasks: [{ COMMAND: command }, { TIME: time }] })],
    ['JSON with an extra comma', `{"COMMAND": "${command}", "TIME": "${time}",}`],
    ['a dictionary of Python', `{'COMMAND': "${command}", 'TIME': '${time}'}`],
    ['a tag around all of it', `<answer>COMMAND: ${command}\nTIME: ${time}</answer>`],
    ['items of HTML', `<ul><li>COMMAND: ${command}</li><li>TIME: ${time}</li></ul>`],
    ['underlined headings', `COMMAND\n-------\n${command}\n\nTIME\n====\n${time}`],
    [
      'a table with a number first',
      `| # | Label | Value |\n|---|---|---|\n| 1 | COMMAND | \`${command.replace('|', '\\|')}\` |\n| 2 | TIME | ${time} |`,
    ],
    ['comments in a fence', `COMMAND:\n${FENCE}sh\n#!/bin/sh\n# list\n${command}\n${FENCE}\nTIME: ${time}`],
    ['a comment as the label', `${FENCE}sh\n# COMMAND:\n${command}\n${FENCE}\nTIME: ${time}`],
    ['the name of a shell before a fence', `COMMAND: bash\n${FENCE}\n${command}\n${FENCE}\nTIME: ${time}`],
    ['words before a fence', `COMMAND: here it is:\n${FENCE}\n${command}\n${FENCE}\nTIME: ${time}`],
    ['the prompt of a folder', `COMMAND: ~$ ${command}\nTIME: ${time}`],
  ])('a response with %s is parsed', (_name, text) => {
    expect(parseTextResponse(text)).toMatchObject({ command, time })
  })

  test.each([
    `**COMMAND: ${command}**\n**TIME: ${time}**`,
    `Sure!\n${right}`,
    `${FENCE}\n${right}\n${FENCE}`,
    `COMMAND: ${command}\nTIME: ${time} (true time)`,
  ])('the response %j does not have the requested form', (text) => {
    expect(parseTextResponse(text).followsFormat).toBe(false)
  })

  test.each([
    ['begins with a back quote', 'COMMAND: `which grep` -c x f', '`which grep` -c x f'],
    ['begins and ends with one', 'COMMAND: `which ls` `pwd`', '`which ls` `pwd`'],
    ['begins with one in code', 'COMMAND: `` `which ls` -l ``', '`which ls` -l'],
    ['begins with one in a fence', `COMMAND: ${FENCE}\`which ls\` -l${FENCE}`, '`which ls` -l'],
    ['is a substitution in a fence', `COMMAND:\n${FENCE}\n\`cat f\`\n${FENCE}`, '`cat f`'],
    ['ends with one in a fence', `COMMAND: ${FENCE}echo \`ls\`${FENCE}`, 'echo `ls`'],
    ['ends with one in code', 'COMMAND: `echo `ls``', 'echo `ls`'],
    ['is two substitutions', 'COMMAND: `cat f`; `cat g`', '`cat f`; `cat g`'],
    ['has back quotes within', 'COMMAND: echo `ls` x', 'echo `ls` x'],
    ['ends with a back quote', 'COMMAND: echo `ls`', 'echo `ls`'],
    ['is nothing but back quotes', 'COMMAND: ``', '``'],
    ['ends with a star', 'COMMAND: cat a/*', 'cat a/*'],
    ['ends with a star in a list of stars', '* COMMAND: cat a/*', 'cat a/*'],
    ['ends with a star behind a bold label', '**COMMAND:** cat a/*', 'cat a/*'],
    ['ends with a star in a bold line', '**COMMAND: cat a/***', 'cat a/*'],
    ['ends with two stars', 'COMMAND: ls a/**', 'ls a/**'],
    ['ends with a star in code', '**COMMAND: `cat a/*`**', 'cat a/*'],
    ['ends with an underscore', '**COMMAND:** cat a_', 'cat a_'],
    ['ends with a quote', `COMMAND: grep 'a b'`, `grep 'a b'`],
    ['has another way in parentheses', 'COMMAND: `ls` (or `ls -a`)', 'ls'],
    ['has another way beside it', 'COMMAND: `ls` or `dir`.', 'ls'],
    ['looks for a tag', "COMMAND: `grep -c '<br>' f`", "grep -c '<br>' f"],
    ['looks for empty tags', "COMMAND: grep -l '<p></p>' *.html", "grep -l '<p></p>' *.html"],
    ['looks for an entity', `COMMAND: grep '&quot;' f`, `grep '&quot;' f`],
    ['begins and ends with quotes', `COMMAND: "my tool" -x "a b"`, `"my tool" -x "a b"`],
    ['begins and ends with single quotes', `COMMAND: 'my tool' 'a b'`, `'my tool' 'a b'`],
    ['has quotes within quotes', `COMMAND: "grep -c "a b" f"`, `grep -c "a b" f`],
    ['ends with quotes within quotes', `COMMAND: 'find . -name '*.log''`, `find . -name '*.log'`],
    [
      'has escaped quotes within quotes',
      String.raw`COMMAND: "grep -c \"a\\.b\" f"`,
      String.raw`grep -c "a\.b" f`,
    ],
    ['has quotes in JSON', JSON.stringify({ command: `sed -n '/"\\./p' f` }), `sed -n '/"\\./p' f`],
    ['ends with a comma', 'COMMAND: tr a ,', 'tr a ,'],
    ['calls bash', `COMMAND: ${FENCE}bash -c 'ls'${FENCE}`, `bash -c 'ls'`],
    ['is one word behind a fence', `COMMAND: ${FENCE}ls\n${FENCE}`, 'ls'],
    ['is one word like a language', `COMMAND:\n${FENCE}\nsh\n${FENCE}`, 'sh'],
    ['continues on the next line', 'COMMAND: ls \\\n  -l\nTIME: x', 'ls \\\n  -l'],
    [
      'has several lines',
      `COMMAND:\n${FENCE}\nfor f in *; do\n  echo $f\ndone\n${FENCE}\nTIME: x`,
      'for f in *; do\n  echo $f\ndone',
    ],
    ['contains a label', 'COMMAND: grep "COMMAND: x" f', 'grep "COMMAND: x" f'],
    ['prints a redirection', 'COMMAND: > f', '> f'],
    ['reads a script', `COMMAND: ${FENCE}sh run.sh${FENCE}`, 'sh run.sh'],
    ['reads a script behind a fence', `COMMAND:\n${FENCE}bash ./run\n${FENCE}`, 'bash ./run'],
    ['begins with a substitution', 'COMMAND: $(which ls) -l', '$(which ls) -l'],
    ['begins with a substitution in code', 'COMMAND: `$(which ls) -l`', '$(which ls) -l'],
    ['begins with a redirection', 'COMMAND: <f grep x', '<f grep x'],
    ['begins with two redirections', 'COMMAND: <f sort >g', '<f sort >g'],
    ['continues after a substitution', 'COMMAND: `which ls` && pwd', '`which ls` && pwd'],
    ['pipes a substitution', 'COMMAND: `which ls` | wc', '`which ls` | wc'],
    ['is a test', 'COMMAND: [ -f a ]', '[ -f a ]'],
    ['is a longer test', 'COMMAND: [[ -f a ]]', '[[ -f a ]]'],
    ['is a group', 'COMMAND: { ls; pwd; }', '{ ls; pwd; }'],
    ['is a subshell', 'COMMAND: (cd a; ls)', '(cd a; ls)'],
    ['has tags', `COMMAND: sed 's/<code>//' f`, `sed 's/<code>//' f`],
    ['has bars in a table', '| COMMAND | cat a | sort |', 'cat a | sort'],
    ['is two commands with prompts', `COMMAND:\n${FENCE}\n$ cd a\nx\n$ ls\ny\n${FENCE}`, 'cd a\nls'],
    ['has a comment', 'COMMAND: ls # all', 'ls # all'],
    ['has entities among their signs', `COMMAND: sed 's/&/\\&amp;/' f`, `sed 's/&/\\&amp;/' f`],
    ['ends with a dot before the time', `COMMAND: find . TIME: 12:05:59`, 'find .'],
    ['is the name of a shell', 'COMMAND: sh\n\nIt reads.', 'sh'],
  ])('a command that %s is kept', (_name, text, kept) => {
    expect(parseTextResponse(text).command).toBe(kept)
  })

  test.each([
    '',
    'I would use a command: ls',
    'The subcommand: ls',
    'COMMAND:\nTIME: 12:05:59',
    `COMMAND: ${FENCE}sh\n${FENCE}`,
    `COMMAND:\n${FENCE}\n\n${FENCE}`,
    `${FENCE}\nls\n${FENCE}\n${FENCE}\npwd\n${FENCE}`,
  ])('the response %j has no command', (text) => {
    expect(parseTextResponse(text).command).toBeNull()
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
