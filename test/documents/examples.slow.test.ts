import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { addDays } from '../../src/domain/time.ts'
import { lastCompleteDay } from '../../src/domain/year/ledger.ts'
import { openApp } from '../support/api-client.ts'
import { openExampleSession, startExampleDemo, followPage, isInstalled } from '../support/example-session.ts'
import { examplePages, examplesOf, isRun, interfacesOf } from '../support/examples.ts'
import type { PageResult } from '../support/example-session.ts'
import { SAMPLE_ARCHIVE } from '../support/legacy-archive.ts'
import { storiesOf } from '../support/signals.ts'
import { startReplay, LINKED, startPages } from '../support/replay/replay-server.ts'
import { REPLAYED } from '../support/replay/responses.ts'
import type { Replayed } from '../support/replay/responses.ts'
import { scriptedModels, startRouter } from '../support/router-simulator.ts'
import { startProvider } from '../support/synthetic-provider.ts'
import { openWorkspace } from '../support/workspace.ts'

const OWN_DATA = `npx dash import signals day.ndjson.gz --quiet --data-dir ./dash-data
npx dash publish-year --once --quiet --data-dir ./dash-data
`

/** Commands that prepare a page's prerequisites. */
const GRANTED: Readonly<Record<string, string>> = {
  'docs/api.md': OWN_DATA,
  'docs/backup.md': OWN_DATA,
}

const root = mkdtempSync(join(tmpdir(), 'dash-examples-'))
let demo: Awaited<ReturnType<typeof startExampleDemo>>

beforeAll(async () => {
  demo = await startExampleDemo(join(root, 'demo'))
})
afterAll(() => {
  demo.close()
  rmSync(root, { recursive: true, force: true })
})

/** The files that examples name without saying where they come from. */
function putFiles(folder: string): void {
  const day = lastCompleteDay(Date.now())
  const signals = gzipSync(`${storiesOf(day, 20)}\n`)
  for (const name of ['day.ndjson.gz', 'hn.ndjson.gz']) writeFileSync(join(folder, name), signals)
  const text = {
    key: 'hn-1',
    text: 'A text.',
    fetchedAt: `${addDays(day, 1)}T00:00:00Z`,
    provenance: 'own:reading',
  }
  writeFileSync(join(folder, 'texts.ndjson.gz'), gzipSync(`${JSON.stringify(text)}\n`))
  cpSync(SAMPLE_ARCHIVE, join(folder, 'old-archive'), { recursive: true })
}

/** Replacements of Internet services: the live sources and the routing service. */
async function standIns(): Promise<Record<string, string>> {
  const replay = await startReplay()
  onTestFinished(() => replay.close())
  const pages = await startPages()
  for (const source of Object.keys(REPLAYED) as Replayed[])
    replay.change(
      source,
      /./,
      (content) => JSON.parse(JSON.stringify(content).replaceAll(LINKED, pages)) as unknown,
    )
  const router = await startRouter({ models: scriptedModels(2), clock: Date.now })
  return { ...replay.env, DASH_ARTICLE_ALLOW_PRIVATE: '127.0.0.1/32', OPENROUTER_BASE_URL: router.url }
}

async function follow(page: string, text?: string): Promise<PageResult> {
  const folder = join(mkdtempSync(join(root, 'page-')), 'folder')
  mkdirSync(folder)
  putFiles(folder)
  const session = openExampleSession(folder, await standIns())
  onTestFinished(() => session.close())
  const granted = GRANTED[page]
  if (granted !== undefined) expect(await session.shell(granted)).toMatchObject({ code: 0 })
  const provider = await startProvider()
  return followPage(examplesOf(page, text), { session, folder, demo, provider: provider.url })
}

/** Pages are followed in bash, and ask with curl. */
const hasShell = ['bash', 'curl'].every(isInstalled)
const hasPython = isInstalled('python3')

/** A path of an OpenAPI document as a pattern: `{name}` stands for the rest of a path. */
const patternOf = (path: string): RegExp => new RegExp(`^${path.replace(/\{\w+\}/, '.+')}$`)

describe.skipIf(!hasShell)('the examples of', () => {
  const pages = examplePages().filter((page) => page !== 'docs/api.md' && examplesOf(page).some(isRun))
  test.each(pages)(
    'the examples of %s run, get only successful responses, and print the shown output',
    async (page) => {
      const { flaws, ran } = await follow(page)
      expect(flaws).toEqual([])
      expect(ran.length).toBeGreaterThan(0)
    },
  )

  test('the examples of the API guide request every path of every interface in each of the three languages', async () => {
    const { flaws, ran } = await follow('docs/api.md')
    expect(flaws).toEqual([])
    const interfaces = await interfacesOf(openApp(await openWorkspace()))
    const paths = interfaces.flatMap((each) => each.paths)
    expect(paths.length).toBeGreaterThan(15)
    for (const language of ['sh', 'js', ...(hasPython ? ['python'] : [])]) {
      const requestedPaths = ran
        .filter(({ example }) => example.language === language)
        .flatMap(({ requests }) => requests.map(({ path }) => path))
      const missing = paths.filter((path) => !requestedPaths.some((each) => patternOf(path).test(each)))
      expect([language, missing]).toEqual([language, []])
    }
  })
})

describe.skipIf(!hasShell)('the test of the examples finds out', () => {
  const broken: Record<string, [string, RegExp]> = {
    'a command that fails': ['```sh\nnpx dash search\n```', /:1: it ended with 64/],
    'a command that fails inside a pipe': ['```sh\nnpx dash serach 2>&1 | cat\n```', /:1: it ended with 64/],
    'a path that is not answered': [
      '```sh\ncurl -s http://127.0.0.1:3000/api/fed | cat\n```',
      /:1: GET \/api\/fed was answered with 404/,
    ],
    'a refusal that does not come': [
      '```sh refused=404\ncurl -s http://127.0.0.1:3000/api/feed\n```',
      /:1: nothing was answered with 404/,
    ],
    'another command of npx': ['```sh\nnpx prettier --version\n```', /:1: it ended with 64/],
    'a variable of no earlier block': ['```sh\nset -u\ncurl -s "$nowhere"\n```', /:1: it ended with /],
    'a program that throws': ['```js\nthrow new Error("no")\n```', /:1: it ended with 1\n/],
    'a program in Python that fails': [
      '```python\nimport nothing_of_this_name\n```',
      /:1: it ended with 1\n/,
    ],
    'what is no JSON': ['```json\n{"a": …}\n```', /:1: it is no JSON/],
    'output that is no JSON': ['```sh\necho a\n```\n\n```json output\n{}\n```', /:5: it prints no JSON:\na/],
    'another output': [
      '```console\n$ echo there are 3\nthere are 4\nof them\n```',
      /:1: it prints\nthere are 3/,
    ],
    'another member': [
      '```sh\ncurl -s http://127.0.0.1:3000/healthz\n```\n\n```json output\n{"state":"ok"}\n```',
      /:5: the output\.state is not there/,
    ],
    'another type of a member': [
      '```sh\ncurl -s http://127.0.0.1:3000/healthz\n```\n\n```json output\n{"status":1}\n```',
      /:5: the output\.status is string, not number/,
    ],
  }
  const findable = Object.entries(broken).filter(([what]) => hasPython || !what.includes('Python'))
  test.each(findable)('%s', async (_what, [text, flaw]) => {
    const { flaws } = await follow('broken.md', text)
    expect(flaws).toEqual([expect.stringMatching(flaw)])
  })
})
