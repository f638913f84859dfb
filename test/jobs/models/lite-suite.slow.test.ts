import { describe, expect, test } from 'vitest'
import { drawItems } from '../../../src/domain/models/lite/items.ts'
import { SHELL_CASES } from '../../../src/domain/models/lite/shell-jobs.ts'
import { SHELL_LIMITS, gradeShell } from '../../../src/domain/models/lite/shell-task.ts'
import type { ShellRuns } from '../../../src/domain/models/lite/shell-task.ts'
import type { LiteKind, ShellRun } from '../../../src/domain/models/lite/suite.ts'
import type { ShellJob } from '../../../src/domain/models/lite/shell-jobs.ts'
import { responseFollowsFormat } from '../../../src/domain/models/lite/text-response.ts'
import { addDays } from '../../../src/domain/time.ts'
import { makeLiteSuite } from '../../../src/jobs/models/lite-suite.ts'
import { solutions, worthlessResponses } from '../../support/lite-responses.ts'
import { sandbox, inRealBash } from '../../support/lite-shell.ts'

const shell = await sandbox()

test('a suite gives its own solutions all points and worthless responses none, on 12 days in a row', async () => {
  for (let index = 0; index < 12; index += 1) {
    const day = addDays('2026-11-01', index)
    const suite = makeLiteSuite(day, shell)
    expect(suite).toMatchObject({
      day,
      prompts: { tool: { kind: 'tool' }, text: { kind: 'text', tools: [] } },
    })
    const items = drawItems(day)
    const solved = solutions(items)
    for (const [kind, responses] of Object.entries(worthlessResponses(items)))
      for (const [name, response] of Object.entries(responses))
        for (const { points } of await suite.grade(kind as LiteKind, response)) expect(points, name).toBe(0)
    expect(await suite.grade('tool', solved.tool)).toMatchObject([{ points: 350 }])
    expect(await suite.grade('text', solved.text)).toMatchObject([{ points: 300 }, { points: 100 }])
    expect(responseFollowsFormat('tool', solved.tool)).toBe(true)
    expect(responseFollowsFormat('text', solved.text)).toBe(true)
  }
})

const jobsOf = (days: number): ShellJob[] =>
  Array.from({ length: days }, (_, index) => drawItems(addDays('2026-01-01', index)).shell)

const asRuns = (runs: readonly ShellRun[]): ShellRuns =>
  Object.fromEntries(SHELL_CASES.map((name, index) => [name, runs[index]])) as unknown as ShellRuns

async function pointsInRealBash(each: readonly { job: ShellJob; command: string }[]): Promise<number[]> {
  const runs = await inRealBash(
    each.flatMap(({ job, command }) =>
      SHELL_CASES.map((name) => ({ command, files: job.cases[name].files })),
    ),
  )
  const size = SHELL_CASES.length
  return each.map(
    ({ job, command }, index) =>
      gradeShell(job, command, asRuns(runs.slice(index * size, (index + 1) * size))).points,
  )
}

async function gradedInSandbox(job: ShellJob, command: string): Promise<ReturnType<typeof gradeShell>> {
  const runs: ShellRun[] = []
  for (const name of SHELL_CASES) runs.push(await shell.run(command, job.cases[name].files, SHELL_LIMITS))
  return gradeShell(job, command, asRuns(runs))
}

/** Other ways in which models do the jobs; `«1»` and so on are what the pattern finds in the job's own solution. */
const SPELLINGS: Record<string, { found: RegExp; spellings: string[] }> = {
  search: {
    found: /include='\*\.(\w+)' '(\w+:)'/,
    spellings: [
      `find . -name "*.«1»" -exec grep -l "«2»" {} \\;`,
      `find . -type f -name '*.«1»' -exec grep -lF '«2»' {} +`,
      `find . -type f -name '*.«1»' -print0 | xargs -0 grep -l '«2»'`,
      `grep -r -l --include="*.«1»" "«2»" .`,
      `grep -rl '«2»' . --include='*.«1»' | sort -u`,
      `find . -type f -name '*.«1»' -exec grep -q '«2»' {} \\; -print`,
      `grep -Rl --include=*.«1» '«2»'`,
      `grep -rl '«2»' --include='*.«1»'`,
      `grep -rlw --include='*.«1»' '«2»' .`,
      `find . -name '*.«1»' | while IFS= read -r f; do grep -q '«2»' "$f" && echo "$f"; done`,
    ],
  },
  count: {
    found: /name '\*\.(\w+)'.* '(\w+:)'/,
    spellings: [
      `grep -rh --include='*.«1»' '«2»' . | wc -l`,
      `grep -r --include="*.«1»" "«2»" . | wc -l`,
      `find . -type f -name '*.«1»' -exec grep -h '«2»' {} + | wc -l`,
      `find . -type f -name '*.«1»' -exec grep -cH '«2»' {} + | awk -F: '{s+=$NF} END {print s+0}'`,
      `grep -rhc --include='*.«1»' «2» | awk '{s+=$1} END{print s}'`,
      `find . -name '*.«1»' -print0 | xargs -0 cat | grep -c '«2»'`,
      `find . -name '*.«1»' -exec grep -c '«2»' {} \\; | awk '{ s += $0 } END { print s }'`,
    ],
  },
  replace: {
    found: /name '\*\.(\w+)'.*s\/(\w+:)\/(\w+:)\//,
    spellings: [
      `find . -type f -name "*.«1»" -exec sed -i "s/«2»/«3»/g" {} \\;`,
      `find . -name '*.«1»' -print0 | xargs -0 sed -i 's/«2»/«3»/g'`,
      `grep -rlZ --include='*.«1»' '«2»' . | xargs -0 -r sed -i 's/«2»/«3»/g'`,
      `grep -rl --include='*.«1»' --null '«2»' . | xargs -0 sed -i 's/«2»/«3»/g'`,
      `find . -name '*.«1»' -type f -print0 | xargs -0 -I{} sed -i 's/«2»/«3»/g' {}`,
      `find . -type f -name '*.«1»' | while read -r f; do sed 's/«2»/«3»/g' "$f" > "$f.tmp" && mv "$f.tmp" "$f"; done`,
      `grep -rl --include='*.«1»' '«2»' . | while IFS= read -r f; do sed -i -e 's|«2»|«3»|g' "$f"; done`,
    ],
  },
  distinct: {
    found: /cat (\w+)\/\*\.(\w+)/,
    spellings: [
      `sort -u «1»/*.«2»`,
      `cat «1»/*.«2» | sort | uniq`,
      `awk '!seen[$0]++' «1»/*.«2» | sort`,
      `find «1» -maxdepth 1 -name '*.«2»' -exec cat {} + | sort -u`,
    ],
  },
  rename: {
    found: /in (\w+)\/\*\.(\w+);.*}\.(\w+)"/,
    spellings: [
      `for f in «1»/*.«2»; do mv "$f" "\${f%.«2»}.«3»"; done`,
      `cd «1» && for f in *.«2»; do mv -- "$f" "\${f%.*}.«3»"; done`,
      `find «1» -maxdepth 1 -type f -name '*.«2»' -exec sh -c 'mv "$1" "\${1%.«2»}.«3»"' _ {} \\;`,
      `find «1» -maxdepth 1 -type f -name '*.«2»' -exec sh -c 'for f; do mv -- "$f" "\${f%.«2»}.«3»"; done' sh {} +`,
      `find «1» -maxdepth 1 -name '*.«2»' -print0 | xargs -0 -I{} sh -c 'mv "$1" "\${1%.«2»}.«3»"' _ {}`,
      `ls «1»/*.«2» | sed 's/.*/mv "&" "&"/; s/«2»"$/«3»"/' | sh`,
      `for f in «1»/*.«2»; do b=$(basename "$f" .«2»); mv "$f" "«1»/$b.«3»"; done`,
    ],
  },
  column: {
    found: /-F'(.)' '\$2 == "(\w+)".* (\S+)$/,
    spellings: [
      `awk -F '«1»' '$2=="«2»" {print $1}' «3»`,
      `cat «3» | awk -F"«1»" '{ if ($2 == "«2»") print $1 }'`,
      `while IFS='«1»' read -r n g p; do [ "$g" = "«2»" ] && echo "$n"; done < «3»`,
      `grep "^[^«1»]*«1»«2»«1»" «3» | cut -d'«1»' -f1`,
    ],
  },
  top: {
    found: /-t '(.)' -k 3,3nr (\S+) /,
    spellings: [
      `sort -t'«1»' -k3 -nr «2» | head -3`,
      `sort -t "«1»" -k3,3rn «2» | head -n3`,
      `sort -t '«1»' -nrk3 «2» | sed -n '1,3p'`,
      `awk -F'«1»' '{ print $3 "\\t" $0 }' «2» | sort -rn | head -n 3 | cut -f2-`,
    ],
  },
  sum: {
    found: /-F'(.)' '\$2 == "(\w+)".* (\S+)$/,
    spellings: [
      `awk -F '«1»' '$2=="«2»"{s+=$3}END{print s+0}' «3»`,
      `grep "«1»«2»«1»" «3» | cut -d'«1»' -f3 | awk '{s+=$1} END {print s}'`,
      `s=0; while IFS='«1»' read -r n g p; do [ "$g" = "«2»" ] && s=$((s+p)); done < «3»; echo $s`,
    ],
  },
  frequency: {
    found: /-d '(.)' -f 2 (\S+) /,
    spellings: [
      `awk -F'«1»' '{ c[$2]++ } END { for (g in c) print c[g], g }' «2»`,
      `cut -d'«1»' -f2 «2» | sort | uniq -c | sort -nr`,
      `cut --delimiter='«1»' --fields=2 «2» | sort | uniq --count`,
      `cut -f2 -d'«1»' < «2» | sort | uniq -c | awk '{ print $1 " " $2 }'`,
    ],
  },
}

function spelled({ kind, solution }: ShellJob): string[] {
  const { found, spellings } = SPELLINGS[kind] ?? { found: /never/, spellings: [] }
  const values = found.exec(solution)?.slice(1)
  if (values === undefined || spellings.length === 0)
    throw new Error(`no other spelling of ${kind}: ${solution}`)
  return spellings.map((each) =>
    each.replaceAll(/«(\d)»/g, (_, place: string) => values[Number(place) - 1] ?? ''),
  )
}

describe('the shell jobs in a real bash', () => {
  test('the solutions solve the shell jobs in a real bash, on 60 days', { timeout: 120_000 }, async () => {
    const each = jobsOf(60).map((job) => ({ job, command: job.solution }))
    expect(await pointsInRealBash(each)).toEqual(each.map(() => 300))
  })

  test.each(Object.keys(SPELLINGS))(
    'a command that solves %s in bash solves it in the sandbox',
    { timeout: 120_000 },
    async (kind) => {
      const job = jobsOf(200).find((each) => each.kind === kind)
      if (!job) throw new Error(`no day asks for ${kind}`)
      const commands = spelled(job)
      const real = await pointsInRealBash(commands.map((command) => ({ job, command })))
      expect(real).toEqual(commands.map(() => 300))
      for (const command of commands) {
        expect((await gradedInSandbox(job, command)).points, command).toBe(300)
      }
    },
  )
})
