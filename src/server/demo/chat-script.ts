import { answerTo, ITEMS_SHOWN, itemsOf, keyOf } from './chat-answers.ts'
import { PHRASES } from './chat-phrases.ts'
import { fieldsOf } from './chat-question.ts'
import type { DemoQuestion } from './chat-question.ts'
import { searched, subjectOf } from './chat-subject.ts'
import type { Subject } from './chat-subject.ts'

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
