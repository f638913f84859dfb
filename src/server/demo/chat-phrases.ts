import type { Day } from '../../domain/time.ts'

/** Phrases of the demo's model around the data, by language. */
export const PHRASES = {
  en: {
    demo: '_Demo: a script answers here, not a language model._',
    hello:
      'Ask what is trending, for the top of the day, week, month or year, for a day (“What was number 1 on 3 November?”, “What entered the Year yesterday?”), for anything by its words, or how often a term is mentioned.',
    trending: 'Trending now:',
    day: 'the last 24 hours',
    week: 'the last 7 days',
    month: 'the last 30 days',
    year: 'the Year, from the archive',
    onDay: (day: Day) => `the Year as it was published on ${day}`,
    top: (list: string) => `Top of ${list}:`,
    place: (rank: number, list: string) => `Number ${rank} of ${list}:`,
    notPublished: (day: Day) => `No Year was published by ${day}.`,
    notPublishedOn: (day: Day) => `No Year was published on ${day}.`,
    changes: (length: number, from: Day, to: Day) =>
      `The first ${length} of the Year as it was published on ${to}, compared with ${from}:`,
    entered: (count: number) => `Entered (${count}):`,
    left: (count: number) => `Left (${count}):`,
    unchanged: 'Nothing entered or left.',
    models:
      'The stored data of the chat holds no free models. The page Models (/models) ranks them by their measured scores and names the recommended one.',
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
      'Спросите, что сейчас в тренде, о лучшем за день, неделю, месяц или год, о дне («Что было лучшим вчера?», «Что вошло в год вчера?»), о чём угодно по словам или как часто упоминается слово.',
    trending: 'Сейчас в тренде:',
    day: 'последние 24 часа',
    week: 'последние 7 дней',
    month: 'последние 30 дней',
    year: 'год, из архива',
    onDay: (day: Day) => `год, каким оно было опубликовано ${day}`,
    top: (list: string) => `Лучшее за ${list}:`,
    place: (rank: number, list: string) => `Место ${rank} за ${list}:`,
    notPublished: (day: Day) => `К ${day} ещё ничего не было опубликовано.`,
    notPublishedOn: (day: Day) => `За ${day} нет публикации.`,
    changes: (length: number, from: Day, to: Day) =>
      `Первые ${length} за год, по публикации ${to} в сравнении с ${from}:`,
    entered: (count: number) => `Вошли (${count}):`,
    left: (count: number) => `Выбыли (${count}):`,
    unchanged: 'Ничего не вошло и не выбыло.',
    models:
      'Бесплатных моделей в данных чата нет. Страница Models (/models) упорядочивает их по измеренным оценкам и называет рекомендованную.',
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

/** The phrases of one language. */
export type Phrases = (typeof PHRASES)[keyof typeof PHRASES]
