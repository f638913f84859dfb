import { describe, expect, test } from 'vitest'
import { runIn, sandbox } from '../../support/lite-shell.ts'
import { inRealBash } from '../../support/real-bash.ts'

const shell = await sandbox()
const files = { 'a.txt': 'b;2;30\na;15;4\na;15;4\n', 'b c.txt': 'c;7;8\n' }

const COMMANDS = [
  `sort -t';' -nrk2 a.txt`,
  `sort -nrk 3 -t';' a.txt`,
  `sort -ut';' -k1,1 a.txt`,
  'sort -uo c.txt a.txt; cat c.txt',
  `cut -sd';' -f2 a.txt`,
  `cut -sd ';' -f 2 a.txt`,
  `x=$(cut -sd\\; -f3 a.txt); echo "$x"`,
  'grep -hm1 a a.txt',
  'grep -nA1 b a.txt',
  'head -qn1 *.txt',
  'tail -qn1 *.txt',
  `awk -F\\; -vn=2 'NR==n { print $1 }' a.txt`,
  'seq 3 | xargs -n1 echo',
  `find . -name 'a*' -print0 | xargs -0n1 sort -nrk1`,
  `find . -name 'a*' -exec sort -t';' -nr -k2 {} +`,
  `sh -c 'if true; then head -qn1 "$1"; fi' _ 'b c.txt'`,
  'for file in *.txt; do tail -qn1 "$file"; done',
]

describe('several options in one word', () => {
  test('are read as a real tool reads them', async () => {
    const held = new Map(Object.entries(files))
    const real = await inRealBash(COMMANDS.map((command) => ({ command, files: held })))
    for (const [index, command] of COMMANDS.entries()) {
      const { outcome, stdout } = await runIn(shell, command, files)
      expect({ outcome, stdout }, command).toEqual({ outcome: 'ran', stdout: real[index]?.stdout })
      expect(stdout, command).not.toBe('')
    }
  })

  test('are left alone behind -- and in quotes', async () => {
    expect(await runIn(shell, `printf 'x\\n' > -nrk2; cat -- -nrk2`)).toMatchObject({ stdout: 'x\n' })
    expect(await runIn(shell, `grep -c -- -nrk2 a.txt`, { 'a.txt': '-nrk2\n' })).toMatchObject({
      stdout: '1\n',
    })
    expect(await runIn(shell, `echo 'sort -nrk2'`)).toMatchObject({ stdout: 'sort -nrk2\n' })
  })
})
