import { tokenize } from '../../domain/feed/tokenize.ts'
import { FILLER, PHRASES, fieldsOf, listOf, textOf } from './chat-question.ts'
import type { DemoQuestion, Fields, Phrases } from './chat-question.ts'

/** What the demo's model says next: calls of tools, or its answer. */
export type DemoReply = { calls: readonly Call[] } | { text: string }

type Call = { name: string; arguments: object }

/** What a question is about: the tools that are asked next, and the paragraphs that their results make. */
interface Plan {
  calls: readonly Call[]
  /** null: the question cannot be answered without tools. */
  answer: string[] | null
}

/** Items and days in a list of an answer. */
const SHOWN = 5
const TEXT_SHOWN = 400

/**
 * The next step of a turn by fixed rules: what a question names decides which tools are called, and the answer is made
 * of what they gave. The same request always gets the same reply.
 */
export function demoReply(question: DemoQuestion): DemoReply {
  const phrases = PHRASES[question.language]
  const { calls, answer } = planOf(question, phrases)
  if (question.mayCall && calls.length > 0) return { calls }
  const paragraphs = answer ?? listAnswer(question.data?.['popular'], phrases, phrases.withoutTools)
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

/** By the words in the question, and by the item it is asked of. */
function planOf(question: DemoQuestion, phrases: Phrases): Plan {
  const { text, data, results } = question
  const item = fieldsOf(data?.['item'])
  const key = KEY.exec(text)?.[0] ?? keyOf(item)
  /** One call, and what is made of its result. */
  const ask = (name: string, given: object, answer: (result: Fields) => string[]): Plan => {
    const result = results.findLast(({ tool }) => tool === name)?.data ?? {}
    return results.length > 0
      ? { calls: [], answer: answer(result) }
      : { calls: [{ name, arguments: given }], answer: null }
  }
  const askHistory = (of: { key: string | null; term: string | null }): Plan =>
    ask('get_trend_history', { ...of, from: null, to: null }, (result) =>
      historyAnswer(result, of.term, phrases),
    )
  if (SIMILAR.test(text) && key !== '')
    return ask('find_similar_items', { key, limit: SHOWN }, ({ items }) =>
      listAnswer(items, phrases, phrases.similar),
    )
  const withoutHistory = text.replaceAll(HISTORY, ' ')
  if (withoutHistory !== text) {
    const [term] = subjectWords(withoutHistory)
    if (term !== undefined) return askHistory({ key: null, term })
    if (key !== '') return askHistory({ key, term: null })
  }
  if (item) return itemPlan(item, question, phrases)
  const period = PERIODS.find(([, pattern]) => pattern.test(text))?.[0]
  if (period !== undefined)
    return ask('get_period_top', { period, list: null, limit: SHOWN, at: null }, ({ items }) =>
      listAnswer(items, phrases, phrases[period]),
    )
  if (TRENDING.test(text))
    return ask('get_feed_snapshot', { sort: 'trending', limit: SHOWN }, ({ popular }) =>
      listAnswer(popular, phrases, phrases.trending),
    )
  const words = subjectWords(text)
  if (words.length === 0 || GREETING.test(text)) return { calls: [], answer: [phrases.hello] }
  return searchPlan(words, question, phrases)
}

function subjectWords(text: string): string[] {
  return [...new Set(tokenize(text))].filter((word) => word.length > 1 && !FILLER.has(word))
}

/** An item that is open is told of from the data of the turn, and read on where its text is longer. */
function itemPlan(item: Fields, { data, results }: DemoQuestion, phrases: Phrases): Plan {
  const isWhole = data?.['textIsWhole'] !== false || results.length > 0
  const read = results.findLast(({ tool }) => tool === 'read_article')?.data
  const text = excerptOf(read?.['text'] ?? data?.['text'])
  return {
    calls: isWhole ? [] : [{ name: 'read_article', arguments: { key: keyOf(item), offset: null } }],
    answer: [
      phrases.item,
      lineOf(item, phrases),
      ...(text === '' ? [phrases.noText] : [phrases.text, `> ${text}`]),
    ],
  }
}

const SEARCH_WORDS = 2

/** A search, once more with fewer words when it found nothing, then the text and the likes of the first item. */
function searchPlan(words: readonly string[], { results }: DemoQuestion, phrases: Phrases): Plan {
  const byLength = words.toSorted((a, b) => b.length - a.length)
  const longest = new Set(byLength.slice(0, SEARCH_WORDS))
  // The longest words tell most; they are asked for in the order in which they were said.
  const query = words.filter((word) => longest.has(word)).join(' ')
  const search = (asked: string): Call => ({
    name: 'search_items',
    arguments: { query: asked, sources: null, from: null, to: null, limit: SHOWN },
  })
  const last = results.at(-1)
  if (!last) return { calls: [search(query)], answer: null }
  const told = (tool: string): Fields => results.findLast((each) => each.tool === tool)?.data ?? {}
  const [found, similar] = [
    itemsOf(told('search_items')['items']),
    itemsOf(told('find_similar_items')['items']),
  ]
  const text = excerptOf(told('read_article')['text'])
  const answer =
    found.length === 0
      ? [phrases.nothing(query)]
      : [
          phrases.found(query),
          listOfItems(found, phrases),
          ...(text === '' ? [] : [phrases.text, `> ${text}`]),
          ...(similar.length === 0 ? [] : [phrases.similar, listOfItems(similar, phrases)]),
        ]
  if (last.tool !== 'search_items') return { calls: [], answer }
  const key = keyOf(found[0] ?? null)
  const read = { name: 'read_article', arguments: { key, offset: null } }
  if (key !== '')
    return { calls: [read, { name: 'find_similar_items', arguments: { key, limit: 3 } }], answer }
  const [fewer = ''] = byLength
  return { calls: results.length === 1 && fewer !== query ? [search(fewer)] : [], answer }
}

function listAnswer(list: unknown, phrases: Phrases, heading: string): string[] {
  const items = itemsOf(list)
  return items.length === 0 ? [phrases.noData] : [heading, listOfItems(items, phrases)]
}

function historyAnswer(result: Fields, term: string | null, phrases: Phrases): string[] {
  const days = itemsOf(result['days']).slice(0, SHOWN)
  if (days.length === 0) return [phrases.noData]
  const rows = days.map(
    (day) => `- ${textOf(day['day'])}: ${numberOf(day['mentions'] ?? day['points']) ?? 0}`,
  )
  const mentions = numberOf(result['mentions']) ?? 0
  return [term === null ? phrases.history : phrases.mentions(term, mentions), rows.join('\n')]
}

function listOfItems(items: readonly Fields[], phrases: Phrases): string {
  const lines = items.slice(0, SHOWN).map((item, index) => `${index + 1}. ${lineOf(item, phrases)}`)
  return lines.join('\n')
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
