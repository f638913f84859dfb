import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { H3 } from 'h3'
import { NEEDS } from '../../src/server/docs/markdown.ts'

/** Fenced blocks of the documents (CONTRIBUTING.md, "Examples in the documents"): every block names its language. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** One fenced block of a page. */
export interface Example {
  /** From the project's root on. */
  page: string
  /** Line of the opening fence, from 1. */
  line: number
  language: string
  text: string
  /** Prerequisites, of NEEDS and TOOLS. */
  needs: readonly string[]
  /** Words after the language other than `needs=`; none is allowed. */
  strange: readonly string[]
}

/** Programs that an example may require. */
const TOOLS: readonly string[] = ['jq', 'sqlite3', 'openssl', 'promtool']

/** Languages of what a reader runs. */
const RUN: readonly string[] = ['sh', 'js', 'python']

/** Aliases of runnable languages, which are not allowed. */
const ALIASES = new Set(
  'bash shell console shellsession zsh javascript mjs ts typescript py jsonc'.split(' '),
)

/** The start of a line that a reader types. */
const TYPED = /^(?:\$ |curl |npx |npm |dash |dashctl |node )/m

/** A command line, also of a crontab, that runs a program named `dash`. */
const BARE = /^(?:[\d*/,-]+ ){0,5}(?:\w+=\S+ )*dash /m

/** The pages with examples. */
export function examplePages(): string[] {
  const guides = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`)
  return ['README.md', 'CONTRIBUTING.md', 'bench/README.md', ...guides.sort()]
}

/** Every fenced block of a page, in its order. */
export function examplesOf(page: string, text = readFileSync(join(ROOT, page), 'utf8')): Example[] {
  const lines = text.split('\n')
  const examples: Example[] = []
  for (let index = 0; index < lines.length; index += 1) {
    const [fence, indent = '', language = '', rest = ''] = /^( *)```(\S*)(.*)$/.exec(lines[index] ?? '') ?? []
    if (fence === undefined) continue
    const body: string[] = []
    const line = index + 1
    for (index += 1; index < lines.length && lines[index] !== `${indent}\`\`\``; index += 1)
      body.push((lines[index] ?? '').slice(indent.length))
    examples.push({ page, line, language, text: `${body.join('\n')}\n`, ...marksOf(rest) })
  }
  return examples
}

function marksOf(rest: string): Pick<Example, 'needs' | 'strange'> {
  const words = rest.split(' ').filter((word) => word !== '')
  const needs = words.filter((word) => word.startsWith('needs='))
  return {
    needs: needs.flatMap((word) => word.slice('needs='.length).split(',')),
    strange: words.filter((word) => !needs.includes(word)),
  }
}

/** True for a block that a test can run. */
export function isRun({ language, needs }: Example): boolean {
  return RUN.includes(language) && !needs.some((need) => need in NEEDS)
}

/** The problem with the opening line of a block, or null. */
export function flawOf({ page, language, text, strange, needs }: Example): string | null {
  if (language === '') return 'it names no language; output and layouts are `text`'
  if (ALIASES.has(language)) return `it is named ${language}; the name here is one of ${RUN.join(', ')}`
  // The backup guide defines `dash` first.
  if (BARE.test(text) && page !== 'docs/backup.md')
    return 'on many systems `dash` is a shell: write `npx dash`'
  if (language === 'text' && TYPED.test(text)) return 'what a reader types is `sh`'
  if (strange[0] !== undefined) return `${strange[0]} is no mark`
  const unknown = needs.find((need) => !(need in NEEDS) && !TOOLS.includes(need))
  if (unknown !== undefined)
    return `nothing may need ${unknown}; known: ${[...Object.keys(NEEDS), ...TOOLS].join(', ')}`
  if (needs.length > 0 && !RUN.includes(language)) return `${language} is not run, so that it needs nothing`
  if (language === 'json') return jsonFlaw(text)
  return null
}

function jsonFlaw(text: string): string | null {
  try {
    JSON.parse(text)
    return null
  } catch (error) {
    return `it is no JSON: ${String(error)}`
  }
}

/** A published interface, as its own OpenAPI document describes it. */
interface PublishedInterface {
  /** Last part of its address below `/docs/api/`. */
  name: string
  /** Where the page of error codes lists its refusals. */
  heading: string
  paths: string[]
  /** Each pair of status and code once. */
  refusals: { status: number; error: string }[]
}

/** Headings of docs/errors.md. */
const HEADINGS: Readonly<Record<string, string>> = {
  'top-year-history': 'History',
  'top-year-log': 'Signed log',
  feed: 'Live feed and subscriptions',
  search: 'Search',
  'free-llm': 'Free models',
  'agent-chat': 'Chat',
  v1: 'OpenAI clients',
  mcp: 'Tools for other programs',
}

interface OpenApi {
  paths: Record<string, Record<string, { responses: Record<string, unknown> }>>
}

/** Every interface that the application publishes; one without a heading gets its name. */
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
      for (const [status, response] of Object.entries(responses)) {
        const [, codes = ''] =
          /"(?:error|code)":\{"type":"string","enum":\[([^\]]*)\]/.exec(JSON.stringify(response)) ?? []
        for (const [, error] of codes.matchAll(/"(\w+)"/g)) all.add(`${status} ${error}`)
      }
    }
  }
  return [...all].map((pair) => {
    const [status = '', error = ''] = pair.split(' ')
    return { status: Number(status), error }
  })
}

/** The text of a page, named from the project's root on. */
export function read(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8')
}

/** The cells of the rows of a page's tables that start with these cells. */
export function rowsOf(page: string, ...first: readonly string[]): string[][] {
  return read(page)
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) =>
      line
        .slice(1, -1)
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim()),
    )
    .filter((cells) => first.every((cell, index) => cells[index] === cell))
}

/** The text below a heading, up to the next one of its rank. */
export function sectionOf(page: string, heading: string): string {
  const rank = heading.split(' ')[0] ?? ''
  const [, rest = ''] = read(page).split(`\n${heading}\n`)
  return rest.split(new RegExp(`^#{1,${rank.length}} `, 'm'))[0] ?? ''
}
