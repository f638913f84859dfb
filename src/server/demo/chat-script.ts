import { wordsOf } from '../../domain/feed/search-words.ts'
import { FILLER, PHRASES, fieldsOf, listOf, textOf } from './chat-question.ts'
import type { DemoQuestion, Phrases } from './chat-question.ts'

/** What the demo's model says next: calls of tools, or its answer. */
export type DemoReply = { calls: readonly { name: string; arguments: object }[] } | { text: string }

/**
 * The next step of a turn by fixed rules: what a question names decides which tools are called, and the answer is made
 * of what they gave. The same request always gets the same reply.
 */
export function demoReply(question: DemoQuestion): DemoReply {
  const subject = subjectOf(question)
  if (question.mayCall) {
    const calls = callsFor(subject, question)
    if (calls.length > 0) return { calls }
  }
  const phrases = PHRASES[question.language]
  const lines = [phrases.demo, ...answerTo(subject, question, phrases)]
  return { text: lines.join('\n\n') }
}

type Calls = Extract<DemoReply, { calls: unknown }>['calls']

function callsFor(subject: Subject, question: DemoQuestion): Calls {
  const { results, rounds, data } = question
  if (subject.about === 'words') return searchCalls(subject.words, question)
  if (rounds > 0 || results.length > 0) return []
  switch (subject.about) {
    case 'hello':
      return []
    case 'trending':
      return [{ name: 'get_feed_snapshot', arguments: { sort: 'trending', limit: ITEMS_SHOWN } }]
    case 'top': {
      const asked = { period: subject.period, list: null, limit: ITEMS_SHOWN, at: null }
      return [{ name: 'get_period_top', arguments: asked }]
    }
    case 'similar':
      return [{ name: 'find_similar_items', arguments: { key: subject.key, limit: ITEMS_SHOWN } }]
    case 'history': {
      const of = subject.key === null ? { key: null, term: subject.term } : { key: subject.key, term: null }
      return [{ name: 'get_trend_history', arguments: { ...of, from: null, to: null } }]
    }
    case 'item': {
      if (data?.['textIsWhole'] !== false) return []
      const key = keyOf(fieldsOf(data['item']))
      return [{ name: 'read_article', arguments: { key, offset: null } }]
    }
  }
}

/** A search, once more with fewer words when it found nothing, then the text and the likes of the first item. */
function searchCalls(words: readonly string[], { results }: DemoQuestion): Calls {
  const search = (query: string): Calls[number] => ({
    name: 'search_items',
    arguments: { query, sources: null, from: null, to: null, limit: ITEMS_SHOWN },
  })
  const last = results.at(-1)
  if (last === undefined) return [search(searched(words))]
  if (last.tool !== 'search_items') return []
  const key = keyOf(itemsOf(last.data['items'])[0] ?? null)
  if (key !== '') {
    return [
      { name: 'read_article', arguments: { key, offset: null } },
      { name: 'find_similar_items', arguments: { key, limit: 3 } },
    ]
  }
  const longest = words.toSorted((a, b) => b.length - a.length)[0] ?? ''
  return results.length === 1 && longest !== searched(words) ? [search(longest)] : []
}

type Fields = Readonly<Record<string, unknown>>

/** Items in a list of an answer. */
const ITEMS_SHOWN = 5
const DAYS_SHOWN = 5
const TEXT_SHOWN = 400

/** The paragraphs of an answer, made of what the tools gave and of the data the turn began with. */
function answerTo(subject: Subject, question: DemoQuestion, phrases: Phrases): string[] {
  if (subject.about === 'hello') return [phrases.hello]
  if (subject.about === 'item') return itemAnswer(question, phrases)
  if (question.results.length === 0) return snapshotAnswer(question.data, phrases, phrases.withoutTools)
  const told = (tool: string): Fields | null =>
    question.results.findLast((each) => each.tool === tool)?.data ?? null
  switch (subject.about) {
    case 'trending':
      return snapshotAnswer(told('get_feed_snapshot'), phrases, phrases.trending)
    case 'top':
      return listAnswer(told('get_period_top'), phrases, phrases[subject.period])
    case 'similar':
      return listAnswer(told('find_similar_items'), phrases, phrases.similar)
    case 'history':
      return historyAnswer(told('get_trend_history'), subject.term, phrases)
    case 'words':
      return foundAnswer(told, searched(subject.words), phrases)
  }
}

function foundAnswer(told: (tool: string) => Fields | null, words: string, phrases: Phrases): string[] {
  const items = itemsOf(told('search_items')?.['items'])
  if (items.length === 0) return [phrases.nothing(words)]
  const text = excerptOf(told('read_article')?.['text'])
  const similar = itemsOf(told('find_similar_items')?.['items'])
  return [
    phrases.found(words),
    listOfItems(items, phrases),
    ...(text === '' ? [] : [phrases.text, `> ${text}`]),
    ...(similar.length === 0 ? [] : [phrases.similar, listOfItems(similar, phrases)]),
  ]
}

function itemAnswer({ data, results }: DemoQuestion, phrases: Phrases): string[] {
  const item = fieldsOf(data?.['item']) ?? {}
  const read = results.findLast(({ tool }) => tool === 'read_article')?.data
  const text = excerptOf(read?.['text'] ?? data?.['text'])
  return [
    phrases.item,
    lineOf(item, phrases),
    ...(text === '' ? [phrases.noText] : [phrases.text, `> ${text}`]),
  ]
}

function listAnswer(result: Fields | null, phrases: Phrases, heading: string): string[] {
  const items = itemsOf(result?.['items'])
  return items.length === 0 ? [phrases.noData] : [heading, listOfItems(items, phrases)]
}

function snapshotAnswer(result: Fields | null, phrases: Phrases, heading: string): string[] {
  return listAnswer({ items: result?.['popular'] }, phrases, heading)
}

function historyAnswer(result: Fields | null, term: string, phrases: Phrases): string[] {
  const days = itemsOf(result?.['days']).slice(0, DAYS_SHOWN)
  if (days.length === 0) return [phrases.noData]
  const rows = days.map(
    (day) => `- ${textOf(day['day'])}: ${numberOf(day['mentions'] ?? day['points']) ?? 0}`,
  )
  const heading = term === '' ? phrases.history : phrases.mentions(term, numberOf(result?.['mentions']) ?? 0)
  return [heading, rows.join('\n')]
}

function listOfItems(items: readonly Fields[], phrases: Phrases): string {
  return items
    .slice(0, ITEMS_SHOWN)
    .map((item, index) => `${index + 1}. ${lineOf(item, phrases)}`)
    .join('\n')
}

/** An item by its title and link, as an answer must cite it. */
function lineOf(item: Fields, phrases: Phrases): string {
  const title = textOf(item['title']).replaceAll(/[[\]\\]/g, String.raw`\$&`)
  const link = textOf(item['link']).replaceAll('(', '%28').replaceAll(')', '%29')
  const cited = link === '' ? `${title} (${keyOf(item)})` : `[${title}](${link})`
  const points = numberOf(item['points'])
  return points === null ? cited : `${cited}, ${phrases.points(points)}`
}

function excerptOf(value: unknown): string {
  const text = textOf(value).replaceAll(/\s+/g, ' ').trim()
  const characters = Array.from(text)
  return characters.length <= TEXT_SHOWN ? text : `${characters.slice(0, TEXT_SHOWN).join('')}…`
}

/** The objects in a list. */
function itemsOf(value: unknown): Fields[] {
  return listOf(value)
    .map(fieldsOf)
    .filter((item) => item !== null)
}

/** The key of an item; empty when it has none. */
function keyOf(item: Fields | null): string {
  return textOf(item?.['key'])
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' ? value : null
}

/** What a question is about. */
type Subject =
  | { about: 'hello' | 'trending' | 'item' }
  | { about: 'top'; period: 'day' | 'week' | 'month' | 'year' }
  | { about: 'similar'; key: string }
  | { about: 'history'; key: string | null; term: string }
  | { about: 'words'; words: readonly string[] }

const SEARCH_WORDS = 2

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

/** What a question is about, by the words in it and by the item it is asked of. */
function subjectOf({ text, data }: DemoQuestion): Subject {
  const item = fieldsOf(data?.['item'])
  const key = KEY.exec(text)?.[0] ?? textOf(item?.['key'])
  if (SIMILAR.test(text) && key !== '') return { about: 'similar', key }
  const withoutHistory = text.replaceAll(HISTORY, ' ')
  if (withoutHistory !== text) {
    const [term] = subjectWords(withoutHistory)
    if (term !== undefined) return { about: 'history', key: null, term }
    if (key !== '') return { about: 'history', key, term: '' }
  }
  if (item !== null) return { about: 'item' }
  const period = PERIODS.find(([, pattern]) => pattern.test(text))?.[0]
  if (period !== undefined) return { about: 'top', period }
  if (TRENDING.test(text)) return { about: 'trending' }
  const words = subjectWords(text)
  return words.length === 0 || GREETING.test(text) ? { about: 'hello' } : { about: 'words', words }
}

function subjectWords(text: string): string[] {
  return [...new Set(wordsOf(text))].filter((word) => word.length > 1 && !FILLER.has(word))
}

/** What is searched for: the longest words, which tell most, in the order in which they were said. */
function searched(words: readonly string[]): string {
  const longest = new Set(words.toSorted((a, b) => b.length - a.length).slice(0, SEARCH_WORDS))
  return words.filter((word) => longest.has(word)).join(' ')
}
