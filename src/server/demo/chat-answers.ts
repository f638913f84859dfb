import { fieldsOf, listOf, textOf } from './chat-question.ts'
import type { DemoQuestion } from './chat-question.ts'
import type { Phrases } from './chat-phrases.ts'
import { searched } from './chat-subject.ts'
import type { Subject } from './chat-subject.ts'

type Fields = Readonly<Record<string, unknown>>

/** Items in a list of an answer. */
export const ITEMS_SHOWN = 5
const DAYS_SHOWN = 5
const TEXT_SHOWN = 400

/** The paragraphs of an answer, made of what the tools gave and of the data the turn began with. */
export function answerTo(subject: Subject, question: DemoQuestion, phrases: Phrases): string[] {
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
export function itemsOf(value: unknown): Fields[] {
  return listOf(value)
    .map(fieldsOf)
    .filter((item) => item !== null)
}

/** The key of an item; empty when it has none. */
export function keyOf(item: Fields | null): string {
  return textOf(item?.['key'])
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' ? value : null
}
