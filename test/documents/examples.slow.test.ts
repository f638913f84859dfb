import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { lastCompleteDay } from '../../src/domain/year/ledger.ts'
import { openApp } from '../support/api-client.ts'
import { PROGRAM, serveDemo, temporaryFolder } from '../support/dash.ts'
import { examplesOf, interfacesOf, isRun } from './examples.ts'
import type { Example } from './examples.ts'
import { freePort } from '../support/local-source.ts'
import { startReplay } from '../support/replay/replay-server.ts'
import { storiesOf } from '../support/signals.ts'
import { startProvider } from '../support/provider.ts'
import { openWorkspace } from '../support/workspace.ts'

/** Makes `npx dash` the built program, and `npx dash serve` a server in the background that listens when the command ends. */
const PRELUDE = `
trap '[ -z "$server" ] || kill "$server"' EXIT
server=
npx() {
  [ "$1" = dash ] || { echo "no example runs npx $1" >&2; return 64; }
  shift
  [ "$1" = serve ] || { "$NODE" "$PROGRAM" "$@"; return; }
  if [ -n "$server" ]; then kill "$server"; wait "$server" || true; fi
  exec 3< <(exec "$NODE" "$PROGRAM" "$@" --port "$PORT" 2> server.log)
  server=$!
  local line
  while read -r line <&3; do case $line in *'listening on '*) return ;; esac; done
  cat server.log >&2
  return 69
}
`

/** The blocks of a page as one script; a program is the standard input of its language's interpreter. */
function scriptOf(examples: readonly Example[]): string {
  const commands = { js: '"$NODE" --input-type=module', python: 'python3' }
  return examples
    .filter((example) => isRun(example))
    .map(({ language, text }) =>
      language === 'js' || language === 'python'
        ? `${commands[language]} <<'END_OF_BLOCK'\n${text}END_OF_BLOCK\n`
        : text,
    )
    .join('')
}

/**
 * Runs the examples of a page in one bash in an empty folder, up to the first that fails.
 *
 * @param server URL in place of the page's server; null for a page that starts its own
 * @param before commands that prepare what the page expects
 */
async function follow(
  page: string,
  server: string | null,
  before = '',
): Promise<[code: number, output: string]> {
  const folder = temporaryFolder()
  const signals = `${storiesOf(lastCompleteDay(Date.now()), 20)}\n`
  writeFileSync(join(folder, 'day.ndjson'), signals)
  copyFileSync(
    fileURLToPath(new URL('../../docs/verify-proof.sh', import.meta.url)),
    join(folder, 'verify-proof.sh'),
  )
  const replay = await startReplay()
  onTestFinished(() => replay.close())
  const provider = await startProvider()
  const port = server === null ? String(await freePort()) : new URL(server).port
  const script = `${PRELUDE}${before}${scriptOf(examplesOf(page))}`
    .replaceAll('127.0.0.1:3000', `127.0.0.1:${port}`)
    .replaceAll('https://dash.example.org', `http://127.0.0.1:${port}`)
    .replaceAll('http://127.0.0.1:11434/v1', provider.url)
  const env = {
    ...replay.env,
    PATH: process.env['PATH'],
    HOME: folder,
    NODE: process.execPath,
    PROGRAM,
    PORT: port,
  }
  const child = spawn('bash', ['-e', '-o', 'pipefail', '-c', script], {
    cwd: folder,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number]
  return [code, output]
}

/** Variables of the demo: a reader does not run the examples of three languages within a minute. */
const DEMO = { DASH_V1: '1', DASH_CHAT_BURST_PER_MINUTE: '60' }

const OWN_DATA = `npx dash import signals day.ndjson --quiet --data-dir ./dash-data
npx dash publish-year --once --quiet --data-dir ./dash-data
`

test.each([
  ['README.md', ''],
  ['docs/api.md', OWN_DATA],
  ['docs/proof.md', ''],
])('the examples of %s succeed at the demo', async (page, before) => {
  const demo = await serveDemo(DEMO)
  onTestFinished(() => demo.close())
  const [code, output] = await follow(page, demo.url, before)
  expect(output).not.toBe('')
  expect(code, output).toBe(0)
})

test.each([
  ['docs/quick-start.md', '', 'sound: 1 publication'],
  [
    'docs/static-hosting.md',
    'trap - EXIT; trap "ls site/year" EXIT\n',
    `${lastCompleteDay(Date.now())}.html`,
  ],
])('the examples of %s succeed in an empty folder', async (page, before, printed) => {
  const [code, output] = await follow(page, null, before)
  expect(code, output).toBe(0)
  expect(output).toContain(printed)
})

test('the examples of docs/api.md request every path of every interface in each of three languages', async () => {
  const paths = (await interfacesOf(openApp(await openWorkspace()))).flatMap((each) => each.paths)
  expect(paths.length).toBeGreaterThan(15)
  // The formats of a path are requested in a loop.
  const nameOf = (path: string): string => path.replace(/\/\{.*/, '').replace(/^.*\//, '')
  for (const language of ['sh', 'js', 'python']) {
    const examples = examplesOf('docs/api.md').filter((example) => example.language === language)
    const text = examples.map((example) => example.text).join('')
    expect([language, paths.filter((path) => !text.includes(nameOf(path)))]).toEqual([language, []])
  }
})
