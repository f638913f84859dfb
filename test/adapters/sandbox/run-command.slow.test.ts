import { expect, test } from 'vitest'
import { runIn, sandbox, inRealBash } from './lite-shell.ts'
const shell = await sandbox()
const files = {
  'a.txt': 'b;2;30\na;15;4\na;15;4\n',
  'b c.txt': 'c;7;8\n',
  'd e/f.log': 'NOTE: a\nNOTES: b\n',
  'd e/g h.log': 'see NOTE: c\n',
}

const COMMANDS = [
  `sort -t';' -nrk2 a.txt`,
  `sort -nrk 3 -t';' a.txt`,
  `sort -ut';' -k1,1 a.txt`,
  'sort -uo c.txt a.txt; cat c.txt',
  `cut -sd';' -f2 a.txt`,
  `cut -sd ';' -f 2 a.txt`,
  `x=$(cut -sd\\; -f3 a.txt); echo "$x"`,
  'head -qn1 *.txt',
  'tail -qn1 *.txt',
  `awk -F\\; -vn=2 'NR==n { print $1 }' a.txt`,
  'seq 3 | xargs -n1 echo',
  `find . -name 'a*' -print0 | xargs -0n1 sort -nrk1`,
  `find . -name 'a*' -exec sort -t';' -nr -k2 {} +`,
  `sh -c 'if true; then head -qn1 "$1"; fi' _ 'b c.txt'`,
  'for file in *.txt; do tail -qn1 "$file"; done',
]

/** Long names, and defaults of the real tools. */
const OTHERS = [
  "grep -rl 'NOTE:' | sort",
  "grep -rl 'NOTE:' . | sort | cut -c3-",
  'grep -rlw NOTE . | sort',
  "grep -rc 'NOTE:' . | sort",
  'grep -r -e NOTES | cut -c1-3',
  "grep -r --include='*.log' NOTE . | sed 's/^/> /' | sort",
  "sort --field-separator=';' --key=2,2nr a.txt",
  "sort -k3nr,3 -t';' a.txt",
  "find . -name '*.log' | sort | xargs -I{} echo '<{}>'",
  "find . -name '*.log' -print0 | xargs -0 -I % echo '<%>' | sort",
  `find . -name '*.log' -exec sh -c 'for f; do echo "<$f>"; done' sh {} + | sort`,
  `find . -name '*.log' -exec sh -c 'for f do echo "<$f>"; done' sh {} + | sort`,
  "ls 'd e' | sort -r",
  "sort '-nrk2' -t';' a.txt",
]

/** Other ways in which models do the jobs of the suite. */
const JOBS = [
  "grep -rh --include='*.log' 'NOTE:' . | wc -l",
  "find . -name '*.log' -exec grep -c 'NOTE:' {} \\; | awk '{ s += $0 } END { print s }'",
  `find . -name '*.log' | while IFS= read -r f; do grep -q NOTES "$f" && echo "$f"; done`,
  "find . -name '*.log' -print0 | xargs -0 sed -i 's/NOTE/x/g'; cat 'd e'/*",
  `find . -name '*.log' | while read -r f; do sed 's/NOTE/x/' "$f" > "$f.tmp" && mv "$f.tmp" "$f"; done; cat 'd e'/*`,
  "awk '!seen[$0]++' a.txt",
  `for f in 'd e'/*.log; do mv -- "$f" "\${f%.*}.md"; done; ls 'd e'`,
  `for f in 'd e'/*.log; do b=$(basename "$f" .log); mv "$f" "d e/$b.md"; done; ls 'd e'`,
  `while IFS=';' read -r n g p; do [ "$g" = "15" ] && echo "$n"; done < a.txt`,
  `s=0; while IFS=';' read -r n g p; do [ "$g" = "15" ] && s=$((s+p)); done < a.txt; echo $s`,
  `awk -F';' '{ print $3 "\\t" $0 }' a.txt | sort -rn | head -n 3 | cut -f2-`,
  "sort -t ';' -nrk3 a.txt | sed -n '1,3p'",
  `cut -d';' -f2 a.txt | sort | uniq -c | sort -nr | awk '{ print $1 " " $2 }'`,
  `awk -F';' '{ c[$2]++ } END { for (g in c) print c[g], g }' a.txt | sort`,
]

test('the options have the same effect as in the real tools', async () => {
  const held = new Map(Object.entries(files))
  const commands = [...COMMANDS, ...OTHERS, ...JOBS]
  const real = await inRealBash(commands.map((command) => ({ command, files: held })))
  for (const [index, command] of commands.entries()) {
    const { outcome, stdout } = await runIn(shell, command, files)
    expect({ outcome, stdout }, command).toEqual({ outcome: 'ran', stdout: real[index]?.stdout })
    expect(stdout, command).not.toBe('')
  }
})

test('the options are left unchanged after -- and in quotes', async () => {
  expect(await runIn(shell, `printf 'x\\n' > -nrk2; cat -- -nrk2`)).toMatchObject({ stdout: 'x\n' })
  expect(await runIn(shell, `grep -c -- -nrk2 a.txt`, { 'a.txt': '-nrk2\n' })).toMatchObject({
    stdout: '1\n',
  })
  expect(await runIn(shell, `echo 'sort -nrk2'`)).toMatchObject({ stdout: 'sort -nrk2\n' })
})
