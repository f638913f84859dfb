import { tokenize } from '../../domain/feed/tokenize.ts'
import { parseJson } from '../../domain/text.ts'
import { DATA_MARKER } from '../../domain/agent/prompt.ts'
import { parseDay } from '../../domain/time.ts'
import type { Day } from '../../domain/time.ts'
import { dayOfQuestion } from './question-day.ts'

/** A completion of the demo's model: tool calls, or its answer. */
export type DemoCompletion = { calls: readonly Call[] } | { text: string }

type Call = { name: string; arguments: object }

/** The plan for a question: the next tool calls, and the answer made of their results. */
interface Plan {
  calls: readonly Call[]
  /** Null if the question cannot be answered without tools. */
  paragraphs: string[] | null
}

/** Items or days in a list of an answer. */
const LIST_LENGTH = 5
const EXCERPT_LENGTH = 400

/**
 * Completes a turn by fixed rules: words of the question choose the tools, and their results make the answer. The same
 * request always gets the same completion.
 */
export function demoCompletion(request: DemoRequest): DemoCompletion {
  const phrases = PHRASES[request.language]
  const { calls, paragraphs: planned } = planFor(request, phrases)
  if (request.hasTools && calls.length > 0) return { calls }
  const paragraphs = planned ?? listAnswer(request.data?.['popular'], phrases, phrases.withoutTools)
  return { text: [phrases.demo, ...paragraphs].join('\n\n') }
}

const KEY = /\b(?:hn|lobsters|lesswrong|hype|midjourney)-[\w:-]+/i

const PERIODS = [
  ['year', /\byear\b|(?<!\p{L})год(?:а|у|ом)?(?!\p{L})/iu],
  ['month', /\bmonth\b|месяц/iu],
  ['week', /\bweek\b|недел/iu],
  ['day', /\btoday\b|\bday\b|сегодня|за день|сутки/iu],
] as const
const TRENDING = /\btrend|\bhot\b|right now|what.?s new|тренд|популярн|сейчас|что нового/iu
const SIMILAR = /\bsimilar\b|like this|\brelated\b|похож/iu
const HISTORY =
  /how often|\bmention\w*|\bhistory\b|over time|как часто|упомина\p{L}*|динамик\p{L}*|истори\p{L}*/giu
const GREETING =
  /^\s*(?:hi|hello|hey|help|привет|здравствуйте|помощь)(?!\p{L})|who are you|кто ты|что ты умеешь/iu

/** Chooses the plan by the words of the question and the open item. */
function planFor(request: DemoRequest, phrases: Phrases): Plan {
  const { text, data, results, today } = request
  const item = asObject(data?.['item'])
  const key = KEY.exec(text)?.[0] ?? keyOf(item)
  /** Plans one call, or the answer if its result is there. */
  const callOnce = (name: string, args: object, answer: (result: JsonObject) => string[]): Plan => {
    const result = results.findLast(({ tool }) => tool === name)?.data ?? {}
    return results.length > 0
      ? { calls: [], paragraphs: answer(result) }
      : { calls: [{ name, arguments: args }], paragraphs: null }
  }
  const historyPlan = (subject: { key: string | null; term: string | null }): Plan =>
    callOnce('get_trend_history', { ...subject, from: null, to: null }, (result) =>
      historyAnswer(result, subject.term, phrases),
    )
  const dayPlan = (day: Day): Plan => {
    const at = day >= today ? null : `${day}T23:59:59.999Z`
    return callOnce('get_period_top', { period: 'year', list: null, limit: LIST_LENGTH, at }, ({ items }) =>
      itemsOf(items).length === 0
        ? [phrases.notPublished(day)]
        : listAnswer(items, phrases, phrases.onDay(day)),
    )
  }
  if (SIMILAR.test(text) && key !== '')
    return callOnce('find_similar_items', { key, limit: LIST_LENGTH }, ({ items }) =>
      listAnswer(items, phrases, phrases.similar),
    )
  const withoutHistory = text.replaceAll(HISTORY, ' ')
  if (withoutHistory !== text) {
    const [term] = subjectWords(withoutHistory)
    if (term !== undefined) return historyPlan({ key: null, term })
    if (key !== '') return historyPlan({ key, term: null })
  }
  const named = dayOfQuestion(text, today)
  if (named) {
    const words = subjectWords(named.rest)
    return words.length > 0 ? searchPlan(words, request, phrases, named.day) : dayPlan(named.day)
  }
  if (item) return itemPlan(item, request, phrases)
  const period = PERIODS.find(([, pattern]) => pattern.test(text))?.[0]
  if (period !== undefined)
    return callOnce('get_period_top', { period, list: null, limit: LIST_LENGTH, at: null }, ({ items }) =>
      listAnswer(items, phrases, phrases[period]),
    )
  if (TRENDING.test(text))
    return callOnce('get_feed_snapshot', { sort: 'trending', limit: LIST_LENGTH }, ({ popular }) =>
      listAnswer(popular, phrases, phrases.trending),
    )
  const words = subjectWords(text)
  if (words.length === 0 || GREETING.test(text)) return { calls: [], paragraphs: [phrases.hello] }
  return searchPlan(words, request, phrases)
}

function subjectWords(text: string): string[] {
  return [...new Set(tokenize(text))].filter((word) => word.length > 1 && !STOP_WORDS.has(word))
}

/** Describes the open item from the data of the turn, and reads the rest of its text if it is longer. */
function itemPlan(item: JsonObject, { data, results }: DemoRequest, phrases: Phrases): Plan {
  const isWhole = data?.['textIsWhole'] !== false || results.length > 0
  const read = results.findLast(({ tool }) => tool === 'read_article')?.data
  const text = excerptOf(read?.['text'] ?? data?.['text'])
  return {
    calls: isWhole ? [] : [{ name: 'read_article', arguments: { key: keyOf(item), offset: null } }],
    paragraphs: [
      phrases.item,
      lineOf(item, phrases),
      ...(text === '' ? [phrases.noText] : [phrases.text, `> ${text}`]),
    ],
  }
}

const SEARCH_WORDS = 2

/**
 * Plans a search, a second one with fewer words if it found nothing, then the text of the first item and similar items.
 *
 * @param day day of the items; null: any
 */
function searchPlan(
  words: readonly string[],
  { results }: DemoRequest,
  phrases: Phrases,
  day: Day | null = null,
): Plan {
  const byLength = words.toSorted((a, b) => b.length - a.length)
  const longestWords = new Set(byLength.slice(0, SEARCH_WORDS))
  // Search for the longest words, in their original order.
  const query = words.filter((word) => longestWords.has(word)).join(' ')
  const searchCall = (queryText: string): Call => ({
    name: 'search_items',
    arguments: { query: queryText, sources: null, from: day, to: day, limit: LIST_LENGTH },
  })
  const last = results.at(-1)
  if (!last) return { calls: [searchCall(query)], paragraphs: null }
  const resultOf = (tool: string): JsonObject => results.findLast((each) => each.tool === tool)?.data ?? {}
  const [found, similar] = [
    itemsOf(resultOf('search_items')['items']),
    itemsOf(resultOf('find_similar_items')['items']),
  ]
  const text = excerptOf(resultOf('read_article')['text'])
  const paragraphs =
    found.length === 0
      ? [phrases.nothing(query)]
      : [
          phrases.found(query),
          listOfItems(found, phrases),
          ...(text === '' ? [] : [phrases.text, `> ${text}`]),
          ...(similar.length === 0 ? [] : [phrases.similar, listOfItems(similar, phrases)]),
        ]
  if (last.tool !== 'search_items') return { calls: [], paragraphs }
  const key = keyOf(found[0] ?? null)
  const read = { name: 'read_article', arguments: { key, offset: null } }
  if (key !== '')
    return { calls: [read, { name: 'find_similar_items', arguments: { key, limit: 3 } }], paragraphs }
  const [fewer = ''] = byLength
  return { calls: results.length === 1 && fewer !== query ? [searchCall(fewer)] : [], paragraphs }
}

function listAnswer(list: unknown, phrases: Phrases, heading: string): string[] {
  const items = itemsOf(list)
  return items.length === 0 ? [phrases.noData] : [heading, listOfItems(items, phrases)]
}

function historyAnswer(result: JsonObject, term: string | null, phrases: Phrases): string[] {
  const days = itemsOf(result['days']).slice(0, LIST_LENGTH)
  if (days.length === 0) return [phrases.noData]
  const rows = days.map(
    (day) => `- ${asString(day['day'])}: ${asNumber(day['mentions'] ?? day['points']) ?? 0}`,
  )
  const mentions = asNumber(result['mentions']) ?? 0
  return [term === null ? phrases.history : phrases.mentions(term, mentions), rows.join('\n')]
}

function listOfItems(items: readonly JsonObject[], phrases: Phrases): string {
  const lines = items.slice(0, LIST_LENGTH).map((item, index) => `${index + 1}. ${lineOf(item, phrases)}`)
  return lines.join('\n')
}

/** Cites an item by its title and link. */
function lineOf(item: JsonObject, phrases: Phrases): string {
  const title = asString(item['title']).replaceAll(/[[\]\\]/g, String.raw`\$&`)
  const link = asString(item['link']).replaceAll('(', '%28').replaceAll(')', '%29')
  const cited = link === '' ? `${title} (${keyOf(item)})` : `[${title}](${link})`
  const points = asNumber(item['points'])
  return points === null ? cited : `${cited}, ${phrases.points(points)}`
}

function excerptOf(value: unknown): string {
  const text = asString(value).replaceAll(/\s+/g, ' ').trim()
  const characters = Array.from(text)
  return characters.length <= EXCERPT_LENGTH ? text : `${characters.slice(0, EXCERPT_LENGTH).join('')}…`
}

function itemsOf(value: unknown): JsonObject[] {
  return asArray(value)
    .map(asObject)
    .filter((item) => item !== null)
}

/** The key of an item; empty if it has none. */
function keyOf(item: JsonObject | null): string {
  return asString(item?.['key'])
}

function asNumber(value: unknown): number | null {
  return typeof value === 'number' ? value : null
}

/** A JSON object of unknown shape. */
type JsonObject = Readonly<Record<string, unknown>>

/** The parts of a request to the demo's model that its script uses. */
export interface DemoRequest {
  language: 'en' | 'ru'
  /** The user's last message. */
  text: string
  /** The stored data of the prompt; null if there is none. */
  data: JsonObject | null
  /** Day of the turn, UTC. */
  today: Day
  /** Tool results, in the order of the calls. */
  results: readonly { tool: string; data: JsonObject }[]
  /** False if the request offers no tools. */
  hasTools: boolean
}

const BLOCK = new RegExp(`^<<<${DATA_MARKER} \\w+$(.*?)^${DATA_MARKER} \\w+>>>$`, 'ms')

/** Parses a request of the Responses API; null if it is invalid. */
export function parseDemoRequest(body: unknown): DemoRequest | null {
  const request = asObject(body)
  const input = asArray(request?.['input'])
  if (!request || input.length === 0 || request['stream'] !== true) return null
  const items = input.map(asObject).filter((item) => item !== null)
  const messages = items
    .filter(({ type, role }) => type === 'message' && role === 'user')
    .map(({ content }) => asString(content))
  const text = messages.at(-1) ?? ''
  const today = parseDay(/ for a turn on (\S+) \(UTC\)/.exec(messages[0] ?? '')?.[1] ?? '')
  if (today === null) return null
  const toolOf = (id: unknown): string =>
    asString(items.find((item) => item['call_id'] === id && item['name'] !== undefined)?.['name'])
  return {
    language: languageOf(messages, text),
    text,
    data: parseObject(BLOCK.exec(messages[0] ?? '')?.[1]),
    today,
    results: items
      .filter(({ type }) => type === 'function_call_output')
      .map(({ call_id: id, output }) => ({ tool: toolOf(id), data: parseObject(output) ?? {} })),
    hasTools: asArray(request['tools']).length > 0,
  }
}

/** The preferred language, else that of the question. */
function languageOf(messages: readonly string[], text: string): 'en' | 'ru' {
  const preferences = parseObject(/^My preferences\b[^{]*(\{.*\})$/s.exec(messages[1] ?? '')?.[1])
  const preferred = preferences?.['language']
  if (preferred === 'Russian') return 'ru'
  if (preferred === 'English') return 'en'
  return /\p{Script=Cyrillic}/u.test(text) ? 'ru' : 'en'
}

function parseObject(text: unknown): JsonObject | null {
  return typeof text === 'string' ? asObject(parseJson(text)) : null
}

function asObject(value: unknown): JsonObject | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : null
}

function asArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function asString(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Phrases of the demo's model around the data, by language. */
const PHRASES = {
  en: {
    demo: '_Demo: a script answers here, not a language model._',
    hello:
      'Ask what is trending, for the top of the day, week, month or year, for a day (“What was the top on 3 November?”), for anything by its words, or how often a term is mentioned.',
    trending: 'Trending now:',
    day: 'Top of the last 24 hours:',
    week: 'Top of the last 7 days:',
    month: 'Top of the last 30 days:',
    year: 'Top of the Year, from the archive:',
    onDay: (day: Day) => `Top of the Year as it was published on ${day}:`,
    notPublished: (day: Day) => `No Year was published by ${day}.`,
    found: (words: string) => `Found for “${words}”:`,
    nothing: (words: string) => `Nothing is stored about “${words}”.`,
    noData: 'The stored data holds nothing for this.',
    similar: 'Similar items:',
    item: 'The item you have open:',
    text: 'From its text:',
    noText: 'No text of it is stored.',
    mentions: (term: string, count: number) =>
      `“${term}” is mentioned by ${count} stored items, latest days first:`,
    history: 'Its latest days:',
    points: (count: number) => `${count} points`,
    withoutTools: 'Without tools I answer from the newest snapshot alone:',
  },
  ru: {
    demo: '_Демо: отвечает сценарий, а не языковая модель._',
    hello:
      'Спросите, что сейчас в тренде, о лучшем за день, неделю, месяц или год, о дне («Что было лучшим вчера?»), о чём угодно по словам или как часто упоминается слово.',
    trending: 'Сейчас в тренде:',
    day: 'Лучшее за последние 24 часа:',
    week: 'Лучшее за последние 7 дней:',
    month: 'Лучшее за последние 30 дней:',
    year: 'Лучшее за год, из архива:',
    onDay: (day: Day) => `Лучшее за год, каким оно было опубликовано ${day}:`,
    notPublished: (day: Day) => `К ${day} ещё ничего не было опубликовано.`,
    found: (words: string) => `Найдено по запросу «${words}»:`,
    nothing: (words: string) => `О «${words}» ничего не сохранено.`,
    noData: 'В сохранённых данных этого нет.',
    similar: 'Похожее:',
    item: 'Открытая запись:',
    text: 'Из её текста:',
    noText: 'Её текст не сохранён.',
    mentions: (term: string, count: number) =>
      `«${term}» упоминается в записях: ${count}; сначала новые дни:`,
    history: 'Последние дни:',
    points: (count: number) => `баллы: ${count}`,
    withoutTools: 'Без инструментов отвечаю только по последнему снимку:',
  },
} as const

type Phrases = (typeof PHRASES)[keyof typeof PHRASES]

/** Words of a question that are not part of its subject. */
const STOP_WORDS = new Set(
  `a about an and any are as at be been best by can could did do does for from give had has have how i in is it items
  its latest like links list me more most my new news of on or our please recent say show so stories story tell than that
  the their them there these they thing things this those to top us was we were what whats when where which who why will
  with you your read article articles find search look anything something
  happen happened popular
  а без бы был была было были в вам вас во вот все вы где да для до его ее её если есть еще ещё за и из или им их к как
  какие какой ко кто ли мне мой мы на над не нет но ну о об он она они от по под про расскажи с со так там то тоже ты у
  уже что чем эта эти это этот я новости новость новое найди покажи поищи статьи статья пожалуйста говорят пишут
  лучшее лучшие лучший лучшим топ произошло случилось популярно`
    .split(/\s+/)
    .filter((word) => word !== ''),
)
