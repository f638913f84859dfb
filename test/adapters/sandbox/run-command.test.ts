import { expect, test } from 'vitest'
import { runIn, sandbox } from './lite-shell.ts'

const shell = await sandbox()
const files = { 'a.txt': 'b\na\n', 'b c.txt': 'c\n' }

test.each([
  ["find . -name '*.txt' | xargs -L1 basename", "xargs: invalid option -- 'L'"],
  ['du -b a.txt', "du: invalid option -- 'b'"],
  ['ls --sort=size', "ls: unrecognized option '--sort=size'"],
  ['grep --no-messages a a.txt', "grep: unrecognized option '--no-messages'"],
  ['ls a.txt *c.txt', 'ls of several files'],
  ['sort -Q a.txt', "sort: invalid option -- 'Q'"],
  ['grep -- a a.txt', null],
  ['find . -executable', "find: unknown predicate '-executable'"],
  ['find . -executable 2>/dev/null', "find: unknown predicate '-executable'"],
  ['du -b a.txt &>/dev/null; true', "du: invalid option -- 'b'"],
  ['sort -zk2 a.txt', "sort: invalid option -- 'z'"],
  ['find . -exec grep -q a {} \\; -exec wc -l {} \\;', 'find has an expression after -exec'],
  ['find . ! -exec grep -q a {} \\; -print', 'find has an expression after -exec'],
  ['find . -exec grep -q a {} \\; -print', 'find has an expression after -exec'],
  ["sed -i.bak 's/a/b/' a.txt", 'sed -i cannot keep a backup'],
  ["sed -ie 's/a/b/' a.txt", 'sed -i cannot keep a backup'],
  ["grep -w '[^a]:' a.txt", 'grep -w with a pattern that is not a word'],
  ["grep --word-regexp 'a:' a.txt", 'grep -w with a pattern that is not a word'],
  ['grep -e a -e b a.txt', 'grep with several patterns'],
  [`awk '{ print | "sort" }' a.txt`, /^awk: Unexpected token: PIPE/],
  [`awk 'length > 1' a.txt`, 'awk length needs parentheses'],
  [`grep -P 'a(?=b)' a.txt`, 'grep -P with lookaround'],
  [`grep -o --perl-regexp '(?<!b)a' a.txt`, 'grep -P with lookaround'],
  ['find . -size +1k', 'find -size uses another unit'],
  ['sort a.txt | perl -ne print', 'perl'],
  ['sort a.txt | perl -ne print 2>/dev/null', 'perl'],
  ['sort a.txt | xargs python3', 'python3'],
  [`awk 'BEGIN { system("ls") }'`, /system\(\) is not supported/],
  ['seq 3 | paste -sd+', /^usage: paste/],
  ['head -n -1 a.txt', 'head: invalid number of lines'],
  ["trap 'rm x' EXIT; ls", 'trap'],
])('the unsupported command %s is not graded', async (command, why) => {
  const run = await runIn(shell, command, files)
  if (why === null) expect(run).toMatchObject({ outcome: 'ran', stdout: 'a\n' })
  else {
    expect(run).toMatchObject({ outcome: 'unsupported', stdout: '' })
    expect(run.reason).toEqual(typeof why === 'string' ? why : expect.stringMatching(why))
  }
})

test('the missing tools of a command are named', async () => {
  const run = await runIn(shell, 'perl -v; ls | python3 -; perl -v', files)
  expect(run.missingTools).toEqual(['perl', 'python3'])
})

test.each([
  ['cat nosuch.txt', 'No such file'],
  [`awk 'length($0) > 9 && nosuch(' a.txt`, 'awk:'],
])('the command %s is wrong everywhere, and is graded', async (command, stderr) => {
  const run = await runIn(shell, command, files)
  expect(run.outcome).toBe('ran')
  expect(run.stderr).toContain(stderr)
})
