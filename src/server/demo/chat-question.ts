import { parseJson } from '../../domain/text.ts'
import { DATA_MARKER } from '../../domain/agent/prompt.ts'

/** A JSON object of unknown shape. */
export type JsonObject = Readonly<Record<string, unknown>>

/** The parts of a request to the demo's model that its script uses. */
export interface DemoRequest {
  language: 'en' | 'ru'
  /** The user's last message. */
  text: string
  /** The stored data of the prompt; null if there is none. */
  data: JsonObject | null
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
  const toolOf = (id: unknown): string =>
    asString(items.find((item) => item['call_id'] === id && item['name'] !== undefined)?.['name'])
  return {
    language: languageOf(messages, text),
    text,
    data: parseObject(BLOCK.exec(messages[0] ?? '')?.[1]),
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

export function asObject(value: unknown): JsonObject | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : null
}

export function asArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

export function asString(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Phrases of the demo's model around the data, by language. */
export const PHRASES = {
  en: {
    demo: '_Demo: a script answers here, not a language model._',
    hello:
      'Ask what is trending, for the top of the day, week, month or year, for anything by its words, or how often a term is mentioned.',
    trending: 'Trending now:',
    day: 'Top of the last 24 hours:',
    week: 'Top of the last 7 days:',
    month: 'Top of the last 30 days:',
    year: 'Top of the Year, from the archive:',
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
      'Спросите, что сейчас в тренде, о лучшем за день, неделю, месяц или год, о чём угодно по словам или как часто упоминается слово.',
    trending: 'Сейчас в тренде:',
    day: 'Лучшее за последние 24 часа:',
    week: 'Лучшее за последние 7 дней:',
    month: 'Лучшее за последние 30 дней:',
    year: 'Лучшее за год, из архива:',
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

export type Phrases = (typeof PHRASES)[keyof typeof PHRASES]

/** Words of a question that are not part of its subject. */
export const STOP_WORDS = new Set(
  `a about an and any are as at be been best by can could did do does for from give had has have how i in is it items
  its latest like links list me more most my new news of on or our please recent say show so stories story tell than that
  the their them there these they thing things this those to top us was we were what whats when where which who why will
  with you your read article articles find search look anything something
  а без бы был была было были в вам вас во вот все вы где да для до его ее её если есть еще ещё за и из или им их к как
  какие какой ко кто ли мне мой мы на над не нет но ну о об он она они от по под про расскажи с со так там то тоже ты у
  уже что чем эта эти это этот я новости новость новое найди покажи поищи статьи статья пожалуйста говорят пишут`
    .split(/\s+/)
    .filter((word) => word !== ''),
)
