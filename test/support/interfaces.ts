import type { H3 } from 'h3'

/** A published interface, as its own OpenAPI document describes it. */
export interface PublishedInterface {
  /** Last part of its address below `/docs/api/`. */
  name: string
  /** Where troubleshooting tells of its refusals. */
  heading: string
  paths: string[]
  /** Each pair of status and code once. */
  refusals: { status: number; error: string }[]
}

/** Headings of docs/troubleshooting.md. */
const HEADINGS: Readonly<Record<string, string>> = {
  'top-year-history': 'History',
  feed: 'Live feed and subscriptions',
  search: 'Search',
  'free-llm': 'Free models',
  'agent-chat': 'Chat',
  mcp: 'Tools for other programs',
}

interface OpenApi {
  paths: Record<string, Record<string, { responses: Record<string, unknown> }>>
}

/** Every interface the application publishes; one without a heading is called by its name. */
export async function interfacesOf(app: H3): Promise<PublishedInterface[]> {
  const routes = app['~routes'].map(({ route }) => route ?? '')
  const documents = routes.filter((route) => route.endsWith('/openapi.json'))
  return Promise.all(
    documents.map(async (path) => {
      const name = path.split('/').at(-2) ?? ''
      const document = (await (await app.request(`http://dash.test${path}`)).json()) as OpenApi
      return {
        name,
        heading: HEADINGS[name] ?? name,
        paths: Object.keys(document.paths),
        refusals: refusalsOf(document),
      }
    }),
  )
}

function refusalsOf({ paths }: OpenApi): PublishedInterface['refusals'] {
  const all = new Set<string>()
  for (const methods of Object.values(paths)) {
    for (const { responses } of Object.values(methods)) {
      for (const [status, answer] of Object.entries(responses)) {
        const [, codes = ''] =
          /"error":\{"type":"string","enum":\[([^\]]*)\]/.exec(JSON.stringify(answer)) ?? []
        for (const [, error] of codes.matchAll(/"(\w+)"/g)) all.add(`${status} ${error}`)
      }
    }
  }
  return [...all].map((pair) => {
    const [status = '', error = ''] = pair.split(' ')
    return { status: Number(status), error }
  })
}
