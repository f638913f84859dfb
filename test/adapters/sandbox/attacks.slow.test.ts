import { createServer } from 'node:net'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { ShellOutcome } from '../../../src/domain/models/lite/suite.ts'
import { runIn, sandbox } from './lite-shell.ts'

const shell = await sandbox()

/** The next command must run correctly after any other. */
async function expectSound(): Promise<void> {
  const run = await runIn(shell, 'cat a.txt', { 'a.txt': 'sound\n' })
  expect(run).toMatchObject({ outcome: 'ran', stdout: 'sound\n', reason: null })
}

const ENDLESS: Record<string, readonly ShellOutcome[]> = {
  ':(){ :|:& };:': ['limit'],
  'while true; do :; done': ['limit'],
  'f(){ f; }; f': ['limit'],
  'sleep 100000': ['limit'],
  'yes | head -n 1': ['unsupported'],
  'echo {1..100000000}': ['limit'],
  'echo {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}':
    ['limit'],
  'a=x; while :; do a=$a$a; done': ['limit'],
  'awk "BEGIN{for(;;) a[i++]=i}"': ['limit'],
  "sed ':a;ba' a.txt": ['limit'],
  "printf '%01000000000d' 1": ['ran', 'limit'],
  'cat a.txt a.txt a.txt | while read l; do cat a.txt >> a.txt; done': ['ran', 'limit'],
  [`grep -E '(a+)+$' <<< ${'a'.repeat(2000)}b`]: ['ran'],
  [`grep -P '(a|a)*b' <<< ${'a'.repeat(2000)}`]: ['ran', 'unsupported'],
  [`echo ${'$('.repeat(400)}echo${')'.repeat(400)}`]: ['ran', 'limit', 'not-executable', 'unsupported'],
  [`echo $((${'('.repeat(1200)}1${')'.repeat(1200)}))`]: ['ran', 'limit', 'not-executable', 'unsupported'],
}

describe('a command that does not end', () => {
  test.each(Object.entries(ENDLESS))('the command %j is ended', async (command, outcomes) => {
    const run = await runIn(shell, command, { 'a.txt': 'a\nb\nc\n' }, { timeMs: 2000, outputBytes: 65_536 })
    expect(outcomes, run.reason ?? '').toContain(run.outcome)
    expect(run.stdout.length).toBeLessThanOrEqual(65_536)
  })

  test('a command is ended from outside if one of its steps does not end', async () => {
    const files = { 'a.txt': 'a'.repeat(800_000) }
    const limits = { timeMs: 100, outputBytes: 1_000_000 }
    const run = await runIn(shell, 'x=$(cat a.txt); [[ $x == *a*a*a*a*a*a*a*a*a*b ]]', files, limits)
    expect(run.outcome).toBe('limit')
    await expectSound()
  })

  test('a command that fills the memory ends only its own process', { timeout: 90_000 }, async () => {
    const limits = { timeMs: 60_000, outputBytes: 1000 }
    const run = await runIn(shell, `echo a | awk '{ $100000000 = "x"; print NF }'`, {}, limits)
    expect(run).toMatchObject({ outcome: 'limit', reason: 'out of memory' })
    await expectSound()
  })
})

describe('the host', () => {
  test('a command can read and write no file of the host', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'dash-host-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    writeFileSync(join(folder, 'secret'), 'of the host')
    const read = await runIn(
      shell,
      `cat /etc/passwd /etc/hostname ${folder}/secret ../../../..${folder}/secret; ls ${folder} /etc /root /home; ln -s ${folder}/secret link; cat link; cat < ${folder}/secret; find / -name secret`,
    )
    expect(`${read.stdout}${read.outcome}`).not.toMatch(/root:|of the host|secret/)
    const written = await runIn(
      shell,
      `mkdir -p ${folder}; echo x > ${folder}/made; cp a.txt ${folder}/copied; tee ${folder}/teed < a.txt`,
      { 'a.txt': 'a\n' },
    )
    expect(written.outcome).toBe('ran')
    for (const name of ['made', 'copied', 'teed']) expect(existsSync(join(folder, name))).toBe(false)
    expect([...written.files.keys()]).toEqual(['a.txt'])
  })

  test("a command sees nothing of the host's environment, processes and name", async () => {
    process.env['DASH_TEST_SECRET'] = 'of the environment'
    onTestFinished(() => void delete process.env['DASH_TEST_SECRET'])
    const run = await runIn(
      shell,
      'env; printenv; set; echo $DASH_TEST_SECRET; cat /proc/self/environ /proc/1/cmdline /proc/self/status; echo $$ $PPID $UID; hostname',
    )
    expect(run.stdout).not.toContain('of the environment')
    expect(run.stdout).not.toContain(String(process.pid))
    expect(run.stdout).not.toContain(process.cwd())
    expect(run.stdout).toContain('PWD=/work')
  })

  test('a command has no access to the network', async () => {
    let connections = 0
    const server = createServer((socket) => {
      connections += 1
      socket.end('of the network')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const { port } = server.address() as { port: number }
    const commands = [
      `curl http://127.0.0.1:${port}/`,
      `wget -qO- http://127.0.0.1:${port}/`,
      `nc 127.0.0.1 ${port}`,
      `cat < /dev/tcp/127.0.0.1/${port}`,
      `exec 3<>/dev/tcp/127.0.0.1/${port}; cat <&3`,
      `html-to-markdown http://127.0.0.1:${port}/`,
    ]
    for (const command of commands) expect((await runIn(shell, command)).stdout).toBe('')
    expect(connections).toBe(0)
  })

  test('a command can start no process, script engine or thread of the host', async () => {
    for (const command of [
      'node -e "console.log(process.pid)"',
      'js-exec -c "console.log(1)"',
      'python3 -c "import os; print(os.getpid())"',
      'perl -e "print $$"',
      'sqlite3 :memory: "select 1"',
      'sudo id',
      'ssh localhost id',
    ]) {
      const run = await runIn(shell, command)
      expect(['unsupported', 'not-executable'], command).toContain(run.outcome)
      expect(run.stdout).toBe('')
    }
    const run = await runIn(shell, `awk 'BEGIN { system("id"); "id" | getline x; print x }'`)
    expect(run.stdout).not.toContain('uid=')
  })

  test('a command does not reach the host through names of JavaScript', async () => {
    const names = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', '__defineGetter__']
    const command = names
      .map(
        (name) =>
          `${name}=polluted; export ${name}; echo $${name} > ${name}; declare -A m; m[${name}]=polluted; echo '{"${name}":{"polluted":1}}' | jq '.${name}.polluted'; awk 'BEGIN{a["${name}"]["polluted"]=1; a["${name}"]=1}'; ${name}`,
      )
      .join('\n')
    const run = await runIn(shell, command)
    expect(['ran', 'not-executable', 'unsupported']).toContain(run.outcome)
    const after = await runIn(shell, 'cat __proto__ a.txt', { 'a.txt': 'a\n', ['__proto__']: 'kept\n' })
    expect(after.outcome).toBe('ran')
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
    await expectSound()
  })
})

describe('an invalid command', () => {
  test.each([
    ['a NUL', 'echo a\0b'],
    ['a megabyte', `echo ${'a'.repeat(1_048_576)}`],
    ['a megabyte of pipes', '|'.repeat(1_048_576)],
    ['an open quote', 'echo "a'],
    ['a broken loop', 'for i in'],
    ['a word that names no tool', 'grpe -r x .'],
    ['prose', 'You can use the following command to do this'],
  ])('the command %s is recognized as invalid', async (_name, command) => {
    const run = await runIn(shell, command)
    expect(run.outcome).toBe('not-executable')
    expect(run.reason?.length).toBeLessThanOrEqual(200)
  })

  test.each(['', ' ', '\n', '#', '\u202e\u0000', '\ud800', '\u{1F600}'])(
    'the command %j does no harm',
    async (command) => {
      const run = await runIn(shell, command, { 'a.txt': 'a\n' })
      expect(run.stdout).toBe('')
      await expectSound()
    },
  )
})

describe('a run', () => {
  test('a run starts afresh: nothing of the previous one is left', async () => {
    await runIn(
      shell,
      'x=kept; export x; echo kept > kept.txt; cd /; alias ls="echo kept"; f(){ echo kept; }',
    )
    const run = await runIn(shell, 'echo "[$x]"; pwd; ls; type f', { 'a.txt': 'a\n' })
    expect(run.stdout).toMatch(/^\[\]\n\/work\na\.txt\n/)
    expect(run.stdout).not.toContain('kept')
  })

  test('a run returns every file it leaves, and fails above the limit', async () => {
    const files = { 'a b/c.txt': 'c\n', 'd.txt': 'd\n' }
    const run = await runIn(
      shell,
      "mv 'a b/c.txt' e; rm d.txt; mkdir f; printf 'Größe' > f/g; ln -s e link",
      files,
    )
    expect(Object.fromEntries(run.files)).toEqual({ e: 'c\n', 'f/g': 'Größe' })
    const much = await runIn(shell, 'for i in 1 2 3 4; do cat d.txt d.txt > e$i; done', {
      'd.txt': 'd'.repeat(20_000),
    })
    expect(much.outcome).toBe('limit')
  })

  test('a run waits for its turn when several are requested at once', async () => {
    const runs = await Promise.all(
      ['echo 1', 'while true; do :; done', 'echo 3'].map((command) => runIn(shell, command)),
    )
    expect(runs.map(({ outcome, stdout }) => `${outcome} ${stdout.trim()}`)).toEqual([
      'ran 1',
      'limit ',
      'ran 3',
    ])
  })
})
