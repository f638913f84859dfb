import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { BASE_URL } from '../../../../src/domain/models/catalogue.ts'
import { sealRun } from '../../../../src/domain/models/stored-run.ts'
import { snippets } from '../../../../src/server/page/models/models-page.ts'
import { hrefsIn, openPage, plainText } from '../../../support/api-client.ts'
import {
  RUN_AT,
  candidate,
  catalogueModel,
  evaluation,
  sampleCandidates,
  sampleRun,
} from '../../../domain/models/free-models.ts'
import { openWorkspace } from '../../../support/workspace.ts'

const DAY = 86_400_000

type Runs = readonly Parameters<typeof sampleRun>[0][]

/** A page of a server with some stored runs, one hour after the last day. */
async function pageWith(runs: Runs, path = '/models', publishedBaseUrl = BASE_URL) {
  const workspace = await openWorkspace()
  for (const [index, changes] of runs.entries()) {
    const run = sampleRun({
      rankingVersion: `2026-08-${22 + index}.v1`,
      now: RUN_AT + index * DAY,
      ...changes,
    })
    await workspace.recommendations.put(run.rankingVersion, sealRun(run))
  }
  const clock = () => RUN_AT + (Math.max(1, runs.length) - 1) * DAY + 3_600_000
  return openPage(workspace, path, { clock, publishedBaseUrl })
}

/** The page as a reader sees it before anything is opened. */
function unfolded(page: string): string {
  const main = /<main.*<\/main>/s.exec(page)?.[0] ?? ''
  const closed = main.replaceAll(
    /<details(?![^>]*\sopen)[^>]*>.*?<summary>(.*?)<\/summary>.*?<\/details>/gs,
    '$1',
  )
  return plainText(closed)
}

const idsOf = (page: string): string[] => [...page.matchAll(/data-model="([^"]*)"/g)].map(([, id = '']) => id)

/** The recommendation of a page, as HTML and without markup. */
function sentenceOf(page: string): { html: string; text: string } {
  const html = /<p class="recommendation">.*?<\/p>/s.exec(page)?.[0] ?? ''
  return {
    html,
    text: plainText(html.replaceAll(/<[^>]*>/g, ''))
      .replaceAll(' .', '.')
      .trim(),
  }
}

test('the page of the models says in a sentence which model to use and why, each reason a link to its meaning', async () => {
  const { html, text } = sentenceOf((await pageWith([{}])).page)
  expect(text).toBe(
    'Use Name of maker/good:free today. It followed the format, called a tool and solved 3 of 3 tasks; 262k context; 20 requests a minute, 50 a day without credits.',
  )
  expect(hrefsIn(html)).toEqual([
    '/models?model=maker%2Fgood%3Afree#call',
    '/docs/lite-suite#grading',
    '/docs/free-models#queries',
    '/docs/lite-suite',
    '/docs/model-scores#the-metadata-score',
    '/docs/model-errors#quota',
  ])
})

test('the page of the models leaves out what was not measured, and the limits of another service', async () => {
  const untested = sampleCandidates().filter(({ model }) => model.id === 'third/new:free')
  const { page } = await pageWith([{ candidates: untested }], '/models', 'https://models.example/v1')
  expect(sentenceOf(page).text).toBe('Use Name of third/new:free today. It has 32k context.')
})

test('the page of the models shows no test of a model that is known by its endpoints alone', async () => {
  const untested = ['a/usable:free', 'b/unusable:free']
  const candidates = (['imperfect', 'failed'] as const).map((status, index) =>
    candidate(untested[index] ?? '', { health: { ...health(90), status }, evaluation: null }),
  )
  const { page, text } = await pageWith([{ candidates, untested }])
  expect(sentenceOf(page).text).toMatch(/^Use Name of a\/usable:free today\. It has 131k context/)
  const formats = [...page.matchAll(/data-unit="format"><span class="(\w+)" title="([^"]*)"/g)]
  expect(formats.map(([, ...shown]) => shown)).toEqual([
    ['plain', 'not tested'],
    ['bad', 'had no endpoint at the service'],
  ])
  expect(text.match(/no test in 14 days/g)).toHaveLength(2)
})

test('the page of the models says that the model it recommends failed its last test', async () => {
  const failed = { status: 'http_429', latencyMs: null, rateLimitKind: 'model', checkedAt: RUN_AT } as const
  const { page } = await pageWith([{ candidates: [candidate('maker/good:free', { health: failed })] }])
  expect(sentenceOf(page).text).toContain('It answered with HTTP 429, called a tool and solved 3 of 3 tasks;')
})

test('the page of the models names the first model of the seed that meets a filter as that', async () => {
  const text = async (path: string) => sentenceOf((await pageWith([], path)).page).text
  expect(await text('/models?minContext=1000000')).toMatch(/its first model that meets the filter is NVIDIA/)
  expect(await text('/models?needs=tools')).toMatch(/its first model is /)
})

test('the filter of the models offers four lengths of the context, and another one that is chosen', async () => {
  const offered = async (path: string): Promise<string> => {
    const { page } = await pageWith([{}], path)
    const field = /<select[^>]* name="minContext".*?<\/select>/s.exec(page)?.[0] ?? ''
    return [...field.matchAll(/<option value="([^"]*)"/g)].map(([, value]) => value).join()
  }
  expect(await offered('/models')).toBe(',32768,131072,262144,1000000')
  expect(await offered('/models?minContext=65536')).toBe(',32768,65536,131072,262144,1000000')
})

test('the page of the models recommends a stale run without today', async () => {
  const { page, text } = await pageWith([{ now: RUN_AT - 2 * DAY }])
  expect(text).toContain('Stale: last updated 2 d ago')
  expect(sentenceOf(page).text).toMatch(/^Use Name of maker\/good:free\. It followed/)
  const ahead = await pageWith([{ now: RUN_AT + 2 * DAY }])
  expect(ahead.text).toContain('Stale: last updated 2026-08-24 03:17 UTC, in the future')
})

test('the page of the models names its feed, and shows no id, score part or internal name before something is opened', async () => {
  const { page } = await pageWith([{}])
  const feed = '/api/free-llm/changes.json'
  expect(page).toMatch(
    new RegExp(`<link rel="alternate"[^>]* href="${feed}" />.*<a href="${feed}">JSON Feed</a>`, 's'),
  )
  const shown = unfolded(page).replaceAll(/Name of \S+/g, '')
  expect(shown).not.toMatch(/\blite\b|primary|metadata|:free|Copy/)
  expect(shown).toContain('Medium confidence, updated 1 h ago')
})

test('the page of the models says that no model meets a filter, and nothing of confidence', async () => {
  const { status, page } = await pageWith([{}], '/models?minContext=9000000')
  expect(status).toBe(200)
  expect(unfolded(page)).toContain('No model meets this filter.')
  expect(page).not.toMatch(/confidence|class="recommendation"|<table/)
})

/** The test of a model that answered in this time, or never. */
const health = (latencyMs: number | null, checkedAt = RUN_AT) => {
  const status = latencyMs === null ? ('timeout' as const) : ('passed' as const)
  return { status, latencyMs, rateLimitKind: 'none', checkedAt } as const
}

/** By rank: `c/first`, `b/second`, and `a/third`, which was never tested. */
const DIFFERENT = [
  candidate('c/first:free', {
    model: catalogueModel('c/first:free', { contextLength: 32_768 }),
    health: health(900),
  }),
  candidate('b/second:free', {
    model: catalogueModel('b/second:free', { contextLength: 262_144 }),
    health: health(300),
    evaluation: evaluation(RUN_AT, [0, 300, 100], false),
  }),
  candidate('a/third:free', {
    health: { status: 'not_probed', latencyMs: null, rateLimitKind: 'none', checkedAt: null },
    evaluation: null,
  }),
]

test.each([
  ['rank', 'ascending', 'first second third'],
  ['name', 'ascending', 'third second first'],
  ['tasks', 'descending', 'first second third'],
  ['response', 'ascending', 'second first third'],
  ['success', 'descending', 'first second third'],
  ['context', 'descending', 'second third first'],
])('the table of the models is sorted by %s as the address says', async (sort, order, names) => {
  const { page } = await pageWith([{ candidates: DIFFERENT }], `/models?sort=${sort}`)
  const shown = idsOf(page).map((id) => id.replace(/^.*\/(.*):free$/, '$1'))
  expect(shown.join(' ')).toBe(names)
  const sorted = /aria-sort="(\w+)"[^>]*><a href="([^"]*)"/.exec(page) ?? []
  expect(sorted.slice(1)).toEqual([order, sort === 'rank' ? '/models#models' : `/models?sort=${sort}#models`])
})

test.each(['/models?sort=none', '/models?sort=rank&sort=name'])(
  'the page of the models refuses %s with 400 and its code',
  async (path) => {
    const { status, page } = await pageWith([{}], path)
    expect([status, page]).toEqual([400, expect.stringContaining('<code>invalid_sort</code>')])
    expect(page).toContain('aria-label="Filter models"')
  },
)

test('the table of the models has the tests of the last days of each model as a line with the same in words', async () => {
  const tested = (days: number, latencyMs: number | null) => ({
    candidates: [candidate('maker/good:free', { health: health(latencyMs, RUN_AT + days * DAY) })],
  })
  const { page } = await pageWith([tested(0, 900), tested(1, null), tested(2, 300)])
  const drawn = /<svg\s+class="record".*?<\/svg/s.exec(page)?.[0] ?? ''
  const text =
    'answered on 2 of 3 days with a test, of the last 14, in 300 to 900 ms; no answer on 2026-08-23'
  expect(drawn).toContain(`<title>${text}</title>`)
  expect(drawn.match(/class="times" d="[MLh\d. ]*"/)?.[0].match(/M/g)).toHaveLength(2)
  expect(drawn).toContain('class="failures" d="M85 7.5l5 5m0-5l-5 5"')
})

test('the page of the models says so when the stored runs cannot be read, and shows the list', async () => {
  const workspace = await openWorkspace()
  const run = sampleRun({})
  await workspace.recommendations.put(run.rankingVersion, sealRun(run))
  const versions = () => Promise.reject(new Error('the store is away'))
  const stores = { ...workspace, recommendations: { ...workspace.recommendations, versions } }
  const { status, page, text } = await openPage(stores, '/models', { clock: () => RUN_AT })
  expect(status).toBe(200)
  expect(text).toContain('The tests of the last days cannot be read.')
  expect(idsOf(page)).toHaveLength(4)
})

const UNMEASURED = 'Nothing was measured here yet.'
const UNREADABLE = 'The stored recommendation cannot be read.'

test.each([
  ['while nothing was evaluated', () => Promise.resolve(null), 'fact plain', UNMEASURED],
  ['of a damaged recommendation', () => Promise.resolve(Buffer.from('{}')), 'fact attention', UNREADABLE],
  ['while the store cannot be read', () => Promise.reject(new Error('away')), 'fact attention', UNREADABLE],
])('the seed %s is called what it is, as grave as that', async (_when, current, level, reason) => {
  const workspace = await openWorkspace()
  const stores = { ...workspace, recommendations: { ...workspace.recommendations, current } }
  const status = await openPage(stores, '/status')
  expect(/<div class="(fact \w+)">\s*<dt>Free model/.exec(status.page)?.[1]).toBe(level)
  expect(status.text.includes('; the stored recommendation cannot be read')).toBe(level === 'fact attention')
  const { page, text } = await openPage(stores, '/models')
  expect(text).toContain(`${reason} The built-in list stands in, ordered by published facts`)
  expect(page).not.toMatch(/class="notice"|confidence,/)
})

const BASE = 'https://service.example/api/v1'

/** A line as a visitor would copy it. */
function line(id: string, model: string): string {
  const shown = new RegExp(`id="snippet-${id}">([^<]*)<`).exec(snippets(BASE, model).html)?.[1] ?? ''
  const characters: Record<string, string> = { lt: '<', gt: '>', quot: '"', '#39': "'", amp: '&' }
  return shown.replaceAll(/&(lt|gt|quot|#39|amp);/g, (_, name: string) => characters[name] ?? '')
}

/** Runs a script with a key in its environment, and returns what it prints. */
async function execute(command: string, ...args: string[]): Promise<string> {
  const env = { PATH: process.env['PATH'] ?? '', OPENROUTER_API_KEY: 'the key' }
  return (await promisify(execFile)(command, args, { env })).stdout
}

/** Ids that a catalogue could contain, with special characters of shells and programs. */
const MODELS = ['vendor/model:free', `a'b"c$(id)\`id\`\\ü\u2028&<d>/e:free`]

describe.each(MODELS)('for the model %j', (model) => {
  const url = `${BASE}/chat/completions`
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Say hello in one word.' }] })
  const headers = { Authorization: 'Bearer the key', 'Content-Type': 'application/json' }

  test('the snippet for curl calls the model with the key of the environment', async () => {
    const printed = await execute('sh', '-c', `curl() { printf '%s\\0' "$@"; }\n${line('curl', model)}`)
    const fields = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
    expect(printed.split('\0')).toEqual(['-s', url, ...fields, '-d', body, ''])
  })

  test('the snippet for JavaScript calls the model with the key of the environment', async () => {
    const fetch = `globalThis.fetch = async (...asked) => {
      console.log(JSON.stringify(asked))
      return Response.json({ choices: [{ message: { content: 'Hello' } }] })
    }`
    const script = `${fetch}\n${line('javascript', model)}`
    const [asked = '', answer] = (await execute(process.execPath, '--input-type=module', '-e', script)).split(
      '\n',
    )
    expect(JSON.parse(asked)).toEqual([url, { method: 'POST', headers, body }])
    expect(answer).toBe('Hello')
  })

  test('the snippet for Python holds the model as one literal', () => {
    const literal = /model=("(?:[^"\\]|\\.)*"), messages/.exec(line('python', model))?.[1] ?? ''
    expect(literal).toMatch(/^[\x20-\x7e]+$/)
    expect(JSON.parse(literal)).toBe(model)
  })
})
