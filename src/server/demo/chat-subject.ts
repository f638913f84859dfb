import { wordsOf } from '../../domain/feed/words.ts'
import { fieldsOf, textOf } from './chat-question.ts'
import type { DemoQuestion } from './chat-question.ts'
import { FILLER } from './chat-phrases.ts'

/** What a question is about. */
export type Subject =
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
export function subjectOf({ text, data }: DemoQuestion): Subject {
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
export function searched(words: readonly string[]): string {
  const longest = new Set(words.toSorted((a, b) => b.length - a.length).slice(0, SEARCH_WORDS))
  return words.filter((word) => longest.has(word)).join(' ')
}
