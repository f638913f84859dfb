import { asArray, asJsonObject } from '../../domain/text.ts'
import type { JsonObject } from '../../domain/text.ts'
import { tokenize } from '../../domain/feed/tokenize.ts'
import { addDays, parseDay } from '../../domain/time.ts'
import type { Day } from '../../domain/time.ts'
import { compareLists } from '../../domain/year/history/calendar.ts'
import { PHRASES } from './chat-phrases.ts'
import type { Phrases } from './chat-phrases.ts'
import { asString } from './chat-request.ts'
import type { DemoRequest } from './chat-request.ts'
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
const MODELS = /\bfree (?:llms?|models?)\b|бесплатн\p{L}* модел/iu
const CHANGES =
  /\b(?:enter(?:ed|s)?|joined|left|dropped out|changed?|changes)\b|(?<!\p{L})(?:вош\p{L}+|попал\p{L}*|выбы\p{L}+|измени\p{L}+)/iu
const SINCE = /\bsince\b|(?<!\p{L})со?(?!\p{L})/iu
const PLACE =
  /(?:\bnumber|\bno\.?|\brank|\bplace|#|(?<!\p{L})(?:номер|место))\s*(\d{1,2}|one|один)(?![\p{L}\d])|\bfirst place|(?<!\p{L})перв\p{L}+ мест\p{L}*/iu
const TOP = /(?:\btop|(?<!\p{L})топ)[\s-]?(\d{1,2})(?!\d)/iu
/** Words that name a list and a part of it, and no subject. */
const LISTING = new RegExp(
  [CHANGES, SINCE, PLACE, TOP, ...PERIODS.map(([, pattern]) => pattern)]
    .map(({ source }) => source)
    .join('|'),
  'giu',
)
const GREETING =
  /^\s*(?:hi|hello|hey|help|привет|здравствуйте|помощь)(?!\p{L})|who are you|кто ты|что ты умеешь/iu

/** Chooses the plan by the words of the question and the open item. */
function planFor(request: DemoRequest, phrases: Phrases): Plan {
  const { text, data, results, today } = request
  const item = asJsonObject(data?.['item'])
  const key = KEY.exec(text)?.[0] ?? keyOf(item)
  const named = dayOfQuestion(text, today)
  const rest = named?.rest ?? text
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
  const topPlan = (period: Period, asOf: Day | null): Plan => {
    const { limit, rank } = askedRanks(rest)
    return callOnce(TOP_TOOL, topArguments(period, limit, asOf, today), (result) =>
      topAnswer(result, { rank, list: phrases[period], asOf }, phrases),
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
  if (MODELS.test(text)) return { calls: [], paragraphs: [phrases.models] }
  const period = PERIODS.find(([, pattern]) => pattern.test(text))?.[0]
  const words = subjectWords(rest.replaceAll(LISTING, ' '))
  const isListing = words.length === 0 && (named !== null || period === 'year')
  if (isListing && CHANGES.test(text)) {
    const day = named?.day ?? today
    return SINCE.test(text)
      ? changesPlan(day, today, request, phrases)
      : changesPlan(addDays(day, -1), day, request, phrases)
  }
  if (named) return isListing ? topPlan('year', named.day) : searchPlan(words, request, phrases, named.day)
  if (item) return itemPlan(item, request, phrases)
  if (period !== undefined) return topPlan(period, null)
  if (TRENDING.test(text))
    return callOnce('get_feed_snapshot', { sort: 'trending', limit: LIST_LENGTH }, ({ popular }) =>
      listAnswer(popular, phrases, phrases.trending),
    )
  const subject = subjectWords(text)
  if (subject.length === 0 || GREETING.test(text)) return { calls: [], paragraphs: [phrases.hello] }
  return searchPlan(subject, request, phrases)
}

function subjectWords(text: string): string[] {
  return [...new Set(tokenize(text))].filter((word) => word.length > 1 && !STOP_WORDS.has(word))
}

type Period = (typeof PERIODS)[number][0]

const TOP_TOOL = 'get_period_top'
const TOP_MAX = 50

/** The part of a list that a question asks for: `top 10`, `number 3`, else the beginning. */
function askedRanks(text: string): { limit: number; rank: number | null } {
  const place = PLACE.exec(text)
  const rank = place && (Number(place[1]) || 1)
  const limit = rank ?? (Number(TOP.exec(text)?.[1]) || LIST_LENGTH)
  return { limit: Math.min(limit, TOP_MAX), rank }
}

/** Arguments for the top of a period, of the Year as published by the end of a day. */
function topArguments(period: Period, limit: number, asOf: Day | null, today: Day): object {
  const at = asOf === null || asOf >= today ? null : `${asOf}T23:59:59.999Z`
  return { period, list: null, limit, at }
}

/** Cites the items of a list, or the one of a rank. `asOf` is the day that the question names. */
function topAnswer(
  result: JsonObject,
  { rank, list, asOf }: { rank: number | null; list: string; asOf: Day | null },
  phrases: Phrases,
): string[] {
  const items = itemsOf(result['items'])
  const day = asOf && publicationDayOf(result, asOf)
  if (items.length === 0) return [day === null ? phrases.noData : phrases.notPublished(day)]
  const named = day === null ? list : phrases.onDay(day)
  const placed = items.filter((item) => item['rank'] === rank)
  return [
    ...(asOf === day || asOf === null ? [] : [phrases.notPublishedOn(asOf)]),
    ...(rank === null || placed.length === 0
      ? [phrases.top(named), listOfItems(items, phrases)]
      : [phrases.place(rank, named), listOfRanks(placed, phrases)]),
  ]
}

/** The day on which the publication of a result was published. */
function publicationDayOf(result: JsonObject, otherwise: Day): Day {
  return parseDay(asString(result['publishedAt']).slice(0, 10)) ?? otherwise
}

/** Compares the Year as published by the ends of two days. */
function changesPlan(from: Day, to: Day, { results, today }: DemoRequest, phrases: Phrases): Plan {
  const calls = [from, to].map((day) => ({
    name: TOP_TOOL,
    arguments: topArguments('year', TOP_MAX, day, today),
  }))
  const [earlier, later] = results.map(({ data }) => data)
  if (!earlier || !later) return { calls, paragraphs: null }
  return {
    calls: [],
    paragraphs: changesAnswer({ result: earlier, day: from }, { result: later, day: to }, phrases),
  }
}

interface DayResult {
  result: JsonObject
  day: Day
}

function changesAnswer(earlier: DayResult, later: DayResult, phrases: Phrases): string[] {
  const [before, after] = [rankedOf(earlier.result), rankedOf(later.result)]
  const missing = [earlier, later].find(({ result }) => rankedOf(result).length === 0)
  if (missing) return [phrases.notPublished(missing.day)]
  if (asString(earlier.result['publication']) === asString(later.result['publication']))
    return [phrases.notPublishedOn(later.day)]
  // A result is cut to a number of bytes: compare as many items of each.
  const length = Math.min(before.length, after.length)
  const { entered, left } = compareLists(before.slice(0, length), after.slice(0, length))
  const section = (heading: (count: number) => string, ranked: readonly RankedItem[]): string[] => {
    const items = ranked.map(({ item }) => item)
    return items.length === 0 ? [] : [heading(items.length), listOfRanks(items, phrases)]
  }
  const sections = [...section(phrases.entered, entered), ...section(phrases.left, left)]
  const [from, to] = [earlier, later].map(({ result, day }) => publicationDayOf(result, day)) as [Day, Day]
  return [phrases.changes(length, from, to), ...(sections.length === 0 ? [phrases.unchanged] : sections)]
}

interface RankedItem {
  key: string
  rank: number
  item: JsonObject
}

function rankedOf(result: JsonObject): RankedItem[] {
  return itemsOf(result['items']).map((item) => ({
    key: keyOf(item),
    rank: asNumber(item['rank']) ?? 0,
    item,
  }))
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
  return items.length === 0 ? [phrases.noData] : [heading, listOfItems(items.slice(0, LIST_LENGTH), phrases)]
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
  const lines = items.map((item, index) => `${index + 1}. ${lineOf(item, phrases)}`)
  return lines.join('\n')
}

/** Cites items with their ranks, which need not follow each other. */
function listOfRanks(items: readonly JsonObject[], phrases: Phrases): string {
  return items.map((item) => `- #${asNumber(item['rank']) ?? 0} ${lineOf(item, phrases)}`).join('\n')
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
    .map(asJsonObject)
    .filter((item) => item !== null)
}

/** The key of an item; empty if it has none. */
function keyOf(item: JsonObject | null): string {
  return asString(item?.['key'])
}

function asNumber(value: unknown): number | null {
  return typeof value === 'number' ? value : null
}

/** Words of a question that are not part of its subject. */
const STOP_WORDS = new Set(
  `a about an and any are as at be been best by can could did do does for from give had has have how i in is it items
  its latest like links list me more most my new news of on or our please recent say show so stories story tell than that
  the their them there these they thing things this those to top us was we were what whats when where which who why will
  with you your read article articles find search look anything something
  happen happened popular lead leads leader leading led stood rank ranked ranking list lists published
  mean means need needed should use used useful uses using want work works would
  summarise summarize summary explain describe
  а без бы был была было были в вам вас во вот все вы где да для до его ее её если есть еще ещё за и из или им их к как
  какие какой ко кто ли мне мой мы на над не нет но ну о об он она они от по под про расскажи с со так там то тоже ты у
  уже что чем эта эти это этот я новости новость новое найди покажи поищи статьи статья пожалуйста говорят пишут
  лучшее лучшие лучший лучшим топ произошло случилось популярно перескажи объясни кратко
  зачем используется используют использовать нужен нужна нужно почему такое`
    .split(/\s+/)
    .filter((word) => word !== ''),
)
