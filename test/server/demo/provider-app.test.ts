import { describe, expect, test } from 'vitest'
import { parseChatRequest } from '../../../src/domain/agent/chat-request.ts'
import { INSTRUCTIONS, turnInput } from '../../../src/domain/agent/prompt.ts'
import { TOOL_DEFINITIONS, parseToolCall } from '../../../src/domain/agent/tools.ts'
import type { ToolRound } from '../../../src/domain/agent/model-call.ts'
import {
  DEMO_CHAT_MODEL,
  DEMO_REQUEST_MAX_BYTES,
  demoProviderApp,
} from '../../../src/server/demo/provider-app.ts'
import { listenLocally } from '../../support/api-client.ts'
import { modelAt } from '../../support/model-turns.ts'

const item = (rank: number): object => ({
  rank,
  key: `hn-${rank}`,
  title: `Chips [part ${rank}]`,
  link: `https://example.org/${rank}_(a)`,
  source: 'hn',
  day: '2026-03-01',
  points: 100 + rank,
  comments: 7,
})
const CITED = String.raw`1. [Chips \[part 1\]](https://example.org/1_%28a%29)`

const SITE = { untrusted: true, about: 'the whole site', sort: 'trending', popular: [item(1), item(2)] }
const ONE_ITEM = { untrusted: true, about: 'one item, which the user has open', item: item(1) }

/** Result of each tool. */
const RESULTS: Readonly<Record<string, object>> = {
  search_items: { untrusted: true, items: [item(1), item(2)] },
  get_period_top: { untrusted: true, period: 'year', items: [item(1)] },
  get_feed_snapshot: { untrusted: true, popular: [item(1)], hackerNews: [] },
  read_article: { untrusted: true, found: true, text: 'A chip is made\nof sand.' },
  find_similar_items: { untrusted: true, found: true, items: [item(3)] },
  get_trend_history: { untrusted: true, mentions: 12, days: [{ day: '2026-03-01', mentions: 5 }] },
}

interface Turn {
  tools: string[]
  calls: object[]
  text: string
  texts: string[]
}

/** A whole turn over a socket, with every call checked as the agent's own are. */
async function turn(
  question: string,
  changes: {
    data?: object
    settings?: object
    results?: Readonly<Record<string, object>>
    /** Results in the order of the calls, instead of one for each tool. */
    sequence?: readonly object[]
    withoutTools?: boolean
  } = {},
): Promise<Turn> {
  const server = await listenLocally(demoProviderApp(0), { bodyMaxBytes: DEMO_REQUEST_MAX_BYTES })
  const model = modelAt(server.url, { key: null, model: DEMO_CHAT_MODEL })
  const parsed = parseChatRequest(
    JSON.stringify({ messages: [{ role: 'user', content: question }], settings: changes.settings }),
  )
  if (!parsed.ok) throw new Error(parsed.code)
  const data = JSON.stringify(changes.data ?? SITE)
  const grounding = { scope: 'site' as const, data, day: '2026-03-01', revision: null }
  const input = turnInput(parsed.request, grounding, 'ab12')
  const rounds: ToolRound[] = []
  const told: Turn = { tools: [], calls: [], text: '', texts: [] }
  for (;;) {
    const call = {
      instructions: INSTRUCTIONS,
      input,
      rounds,
      tools: changes.withoutTools ? [] : TOOL_DEFINITIONS,
      maxOutputTokens: 1_000,
    }
    for await (const event of model.ask(call, new AbortController().signal)) {
      if (event.kind === 'text') told.texts.push(event.text)
      if (event.kind === 'failed') throw new Error(`${event.error} ${event.code}`)
      if (event.kind !== 'end') continue
      expect(event.usage?.in).toBeGreaterThan(0)
      if (event.calls.length === 0) return { ...told, text: told.texts.join('') }
      const results = event.calls.map((each, index) => {
        expect(parseToolCall(each)).toMatchObject({ ok: true })
        told.tools.push(each.name)
        told.calls.push(JSON.parse(each.arguments) as object)
        return {
          call: each,
          output: JSON.stringify(changes.sequence?.[index] ?? { ...RESULTS, ...changes.results }[each.name]),
        }
      })
      rounds.push({ output: event.output, results })
    }
  }
}

describe('the demo answers from tools', () => {
  test.each([
    ['What is trending?', ['get_feed_snapshot'], 'Trending now:'],
    ['Что сейчас популярно?', ['get_feed_snapshot'], 'Сейчас в тренде:'],
    ['Top of the year, please', ['get_period_top'], 'Top of the Year, from the archive:'],
    ['Покажи лучшее за год', ['get_period_top'], 'Лучшее за год, из архива:'],
    ['What was big this week?', ['get_period_top'], 'Top of the last 7 days:'],
    ['Что интересного сегодня?', ['get_period_top'], 'Лучшее за последние 24 часа:'],
    [
      'What about solar chips?',
      ['search_items', 'read_article', 'find_similar_items'],
      'Found for “solar chips”:',
    ],
    [
      'Расскажи про чипы',
      ['search_items', 'read_article', 'find_similar_items'],
      'Найдено по запросу «чипы»:',
    ],
    ['What is similar to hn-123?', ['find_similar_items'], 'Similar items:'],
  ])('%s', async (question, tools, heading) => {
    const { tools: called, text } = await turn(question)
    expect(called).toEqual(tools)
    expect(text).toContain(heading)
    expect(text).toMatch(/^_(Demo|Демо): /)
    expect(text).toMatch(/\[Chips \\\[part \d\\\]\]\(https:\/\/example\.org\/\d_%28a%29\)/)
  })

  test('the demo answers how often a term is mentioned', async () => {
    const { tools, text } = await turn('How often is Rust mentioned?')
    expect(tools).toEqual(['get_trend_history'])
    expect(text).toContain('“rust” is mentioned by 12 stored items')
    expect(text).toContain('- 2026-03-01: 5')
  })

  test.each([
    ['What was the top on 3 November?', '2025-11-03'],
    ['What was the top on February 3rd?', '2026-02-03'],
    ['the best of Dec 24, 2024', '2024-12-24'],
    ['What happened on 2026-02-28?', '2026-02-28'],
    ['What was popular yesterday?', '2026-02-28'],
    ['top 5 days ago', '2026-02-24'],
    ['Что было лучшим вчера?', '2026-02-28'],
    ['Топ 14 февраля', '2026-02-14'],
    ['Что произошло неделю назад?', '2026-02-22'],
    ['What was in the year a week ago?', '2026-02-22'],
    ['Which story led the Top Year on 3 November?', '2025-11-03'],
  ])('a question that names a day gets the Year of that day: %s', async (question, day) => {
    const { tools, calls, text } = await turn(question)
    expect(tools).toEqual(['get_period_top'])
    expect(calls).toEqual([expect.objectContaining({ period: 'year', at: `${day}T23:59:59.999Z` })])
    expect(text).toMatch(new RegExp(`(Year as it was published on|было опубликовано) ${day}:`))
  })

  test.each([
    ['What was number 1 of the Year on 10 November 2025?', '2025-11-10'],
    ['number one on 2025-11-10', '2025-11-10'],
    ['Who was in first place on 10 November?', '2025-11-10'],
    ['Кто был на первом месте 10 ноября?', '2025-11-10'],
  ])('a question for a rank on a day gets the item of that rank: %s', async (question, day) => {
    const { calls, text } = await turn(question)
    expect(calls).toEqual([{ period: 'year', list: null, limit: 1, at: `${day}T23:59:59.999Z` }])
    expect(text).toMatch(new RegExp(`(Number 1 of the Year|Место 1 за год).* ${day}:`))
    expect(text).toContain(`- #1 ${CITED.slice(3)}`)
  })

  test('the demo reads as many items of a list as the question names', async () => {
    expect((await turn('top 10 of the year')).calls).toMatchObject([{ period: 'year', limit: 10, at: null }])
    expect((await turn('number 3 of the month')).calls).toMatchObject([{ period: 'month', limit: 3 }])
  })

  test('the demo says when the day of the question had no publication', async () => {
    const { text } = await turn('top on 10 February', {
      results: { get_period_top: { publishedAt: '2026-02-09T00:10:00Z', items: [item(1)] } },
    })
    expect(text).toContain('No Year was published on 2026-02-10.')
    expect(text).toContain('Top of the Year as it was published on 2026-02-09:')
  })

  test.each([
    ['What entered the Year yesterday?', '2026-02-27', '2026-02-28'],
    ['What left the Top Year on 3 February?', '2026-02-02', '2026-02-03'],
    ['What changed in the year since 3 February?', '2026-02-03', null],
    ['What entered the Year?', '2026-02-28', null],
    ['Что вошло в год вчера?', '2026-02-27', '2026-02-28'],
  ])('a question about changes compares two publications: %s', async (question, from, to) => {
    const endOf = (day: string | null): string | null => day && `${day}T23:59:59.999Z`
    const { tools, calls } = await turn(question)
    expect(tools).toEqual(['get_period_top', 'get_period_top'])
    expect(calls).toMatchObject([
      { period: 'year', limit: 50, at: endOf(from) },
      { period: 'year', limit: 50, at: endOf(to) },
    ])
  })

  test('the demo names what entered and left, with ranks, among as many items of both publications', async () => {
    const published = (day: number, ...ranked: number[]): object => ({
      publication: `year-${day}`,
      publishedAt: `2026-02-${day}T00:10:00Z`,
      items: ranked.map((name, index) => ({ ...item(name), rank: index + 1 })),
    })
    const ask = async (...answers: object[]): Promise<string> =>
      (await turn('What entered the Year yesterday?', { sequence: answers })).text
    const text = await ask(published(27, 1, 2, 3), published(28, 1, 4, 2, 3))
    expect(text).toContain(
      'The first 3 of the Year as it was published on 2026-02-28, compared with 2026-02-27:',
    )
    expect(text).toMatch(/Entered \(1\):\n\n- #2 \[Chips \\\[part 4/)
    expect(text).toMatch(/Left \(1\):\n\n- #3 \[Chips \\\[part 3/)
    expect(await ask(published(27, 1, 2), published(28, 2, 1))).toContain('Nothing entered or left.')
    expect(await ask(published(27, 1), published(27, 1))).toContain('No Year was published on 2026-02-28.')
    expect(await ask({ items: [] }, published(28, 1))).toContain('No Year was published by 2026-02-27.')
  })

  test('the demo names the page of the free models', async () => {
    const { tools, text } = await turn('What is the best free model?')
    expect(tools).toEqual([])
    expect(text).toContain('/models')
  })

  test('the demo searches for the subject of an article to summarise', async () => {
    const { calls } = await turn('Summarise the article about zx')
    expect(calls[0]).toMatchObject({ query: 'zx' })
  })

  test.each([
    ['What is Rust used for?', 'rust'],
    ['Why would I need Postgres?', 'postgres'],
    ['Зачем нужен Rust?', 'rust'],
  ])('a question is searched by its subject alone: %s', async (question, query) => {
    const { calls } = await turn(question)
    expect(calls[0]).toMatchObject({ query })
  })

  test('a question about a subject on a day searches that day', async () => {
    const { tools, calls } = await turn('What about solar chips on 14 February?')
    expect(tools[0]).toBe('search_items')
    expect(calls[0]).toMatchObject({ query: 'solar chips', from: '2026-02-14', to: '2026-02-14' })
  })

  test('the demo says that nothing was published by a day, and takes no day that does not exist', async () => {
    const { text } = await turn('top on 1 January', { results: { get_period_top: { items: [] } } })
    expect(text).toContain('No Year was published by 2026-01-01.')
    expect((await turn('What about 31 February?')).tools[0]).toBe('search_items')
  })

  test('the demo searches again with fewer words, and says that nothing is stored', async () => {
    const { tools, text } = await turn('What about purple elephants?', {
      results: { search_items: { items: [] } },
    })
    expect(tools).toEqual(['search_items', 'search_items'])
    expect(text).toContain('Nothing is stored about “purple elephants”.')
  })

  test('the demo quotes the text of the first item', async () => {
    const { text } = await turn('What about chips?')
    expect(text).toContain(CITED)
    expect(text).toContain('> A chip is made of sand.')
  })
})

test('the demo answers about the open item from the data of the prompt', async () => {
  const { tools, text } = await turn('What does it say?', {
    data: { ...ONE_ITEM, textIsWhole: true, text: 'All of it.' },
  })
  expect(tools).toEqual([])
  expect(text).toContain('> All of it.')
  const longer = await turn('What does it say?', { data: { ...ONE_ITEM, textIsWhole: false, text: 'All' } })
  expect(longer.tools).toEqual(['read_article'])
  expect(longer.text).toContain('> A chip is made of sand.')
})

test('the demo answers in the preferred language', async () => {
  expect((await turn('What is trending?', { settings: { preferredLanguage: 'ru' } })).text).toContain(
    'тренде',
  )
  expect((await turn('Что в тренде?', { settings: { preferredLanguage: 'en' } })).text).toContain('Trending')
})

test('the demo answers from the snapshot alone without tools', async () => {
  const { tools, text } = await turn('What is trending?', { withoutTools: true })
  expect(tools).toEqual([])
  expect(text).toContain('Without tools')
  expect(text).toContain(CITED)
})

test('the demo says that it is a demo, and what it can answer', async () => {
  const { tools, text } = await turn('Hello!')
  expect(tools).toEqual([])
  expect(text).toContain('a script answers here, not a language model')
})

test('the demo streams the same answer to the same question', async () => {
  const [first, second] = [await turn('What is trending?'), await turn('What is trending?')]
  expect(first).toEqual(second)
  expect(first.texts.length).toBeGreaterThan(3)
})

test('the demo refuses a request that is no turn, or not streamed', async () => {
  const ask = (body: unknown): Promise<Response> | Response =>
    demoProviderApp(0).request('/chat/completions', { method: 'POST', body: JSON.stringify(body) })
  for (const body of [null, {}, { messages: [], stream: true }, { messages: [{ role: 'user' }] }]) {
    const response = await ask(body)
    expect(response.status).toBe(400)
    expect(response.headers.get('x-dash-demo')).toBe('true')
  }
})
