import { H3 } from 'h3'
import type { H3Event } from 'h3'
import type { NewsSource } from '../../domain/feed/source.ts'
import { respondJson } from '../respond.ts'

/** Titles the demo's sources vouch for, by source and the source's own id. */
export type DemoTitles = Readonly<Record<NewsSource, Readonly<Record<string, string>>>>

/** Path below which each source's API is imitated. */
export const DEMO_SOURCE_PATHS = { hn: '/hn', lobsters: '/lobsters', lesswrong: '/lesswrong' } as const

const HEADERS = { 'cache-control': 'no-store', 'x-dash-demo': 'true' }

/**
 * Stands in for the three owning sources while the demo is prepared, so that asking them for titles runs as it would
 * against the real ones. Every answer says that it is the demo's.
 */
export function demoSourceApp(titles: DemoTitles): H3 {
  const app = new H3({ silent: true })
  app.get(`${DEMO_SOURCE_PATHS.hn}/item/:file`, (event) => {
    const id = idOf(event)
    const title = titles.hn[id]
    return answer(event, title === undefined ? null : { id: Number(id), type: 'story', title, demo: true })
  })
  app.get(`${DEMO_SOURCE_PATHS.lobsters}/s/:file`, (event) => {
    const id = idOf(event)
    const title = titles.lobsters[id]
    return answer(event, title === undefined ? null : { short_id: id, title, demo: true })
  })
  app.post(DEMO_SOURCE_PATHS.lesswrong, async (event) => {
    const { variables } = JSON.parse(await event.req.text()) as { variables: { id: string } }
    const title = titles.lesswrong[variables.id]
    const result = title === undefined ? null : { _id: variables.id, title, demo: true }
    return answer(event, { data: { post: { result } } })
  })
  return app
}

function answer(event: H3Event, value: unknown): Response {
  return respondJson(event, 200, HEADERS, value)
}

function idOf(event: H3Event): string {
  return (event.context.params?.['file'] ?? '').replace(/\.json$/, '')
}
