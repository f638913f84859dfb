import { Refusal } from '../../domain/refusal.ts'
import type { Instant } from '../../domain/time.ts'
import { codeOf, retryAfter } from '../route.ts'
import type { Contract } from '../route.ts'
import type { Assets } from './assets.ts'
import { NOTHING, html } from './html.ts'
import type { Html } from './html.ts'
import type { PageSources } from './page-sources.ts'

/** Said wherever a person looks while the server runs on the bundled sample. */
const DEMO_NOTICE =
  'DEMO: a bundled sample of real items from 2020-2021, shifted in time, most of them placed on the day they were published. Nothing here is current, and it is deleted when the server stops.'

/** What every page of a server has in common. */
export interface Frame {
  assets: Assets
  demo: boolean
}

/** One page inside the frame. */
export interface PageContent {
  title: string
  /** Further elements of the head. */
  head: Html
  /** Links of the menu beside the documentation. */
  navLinks: readonly { href: string; title: string }[]
  /** Content of `<main>`. */
  main: Html
}

/** A whole page around its content: skip link, header with menu and switch of colours, notice, landmarks. */
export function layout({ assets, demo }: Frame, { title, head, navLinks, main }: PageContent): string {
  const name = demo ? `DEMO: ${title}` : title
  const links = [...navLinks, { href: '/docs', title: 'Documentation' }]
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${name}</title>
        <link rel="icon" type="image/svg+xml" href="${assets.href('icon.svg')}" />
        <link rel="stylesheet" href="${assets.href('page.css')}" />
        <script src="${assets.href('theme.js')}"></script>
        <script type="module" src="${assets.href('page.js')}"></script>
        ${head}
      </head>
      <body>
        <a class="skip" href="#main">Skip to the content</a>
        <header>
          <div class="top">
            <a class="brand" href="/">dash</a>
            <nav aria-label="Rooms">
              <ul>
                ${links.map((link) => html`<li><a href="${link.href}">${link.title}</a></li>`)}
              </ul>
            </nav>
            ${THEME_SWITCH}
          </div>
          ${demo ? html`<p class="demo" role="note">${DEMO_NOTICE}</p>` : NOTHING}
        </header>
        <main id="main" tabindex="-1">${main}</main>
        <p id="announcements" class="unseen" role="status"></p>
      </body>
    </html> `.html
}

/** Works by style alone; a script only remembers it. */
const THEME_SWITCH = html`<fieldset class="theme">
  <legend class="unseen">Colours</legend>
  ${(['auto', 'light', 'dark'] as const).map(
    (theme) =>
      html`<label
        ><input
          type="radio"
          name="theme"
          id="theme-${theme}"
          value="${theme}"
          ${theme === 'auto' ? html`checked` : NOTHING}
        /><span>${theme}</span></label
      >`,
  )}
</fieldset>`

/** What every answer with HTML carries beside its policy (docs/page.md). */
const COMMON = {
  'cache-control': 'no-cache',
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

/** The policy's directives; all that is not named is forbidden. */
const POLICY = {
  'default-src': ["'none'"],
  'script-src': ["'self'"],
  'style-src': ["'self'"],
  'img-src': ["'self'"],
  'connect-src': ["'self'"],
  'base-uri': ["'none'"],
  'form-action': ["'self'"],
  'frame-ancestors': ["'none'"],
}

/** Sources a page needs beside those of every page, by directive. */
export type PolicyAdditions = Readonly<Record<string, readonly string[]>>

/** Headers of a page that needs nothing but this server. */
export const PAGE_HEADERS = pageHeaders({})

/** Headers of a page; what it needs from elsewhere is added to the policy by name. */
export function pageHeaders(additions: PolicyAdditions): Readonly<Record<string, string>> {
  const directives = new Map<string, readonly string[]>(Object.entries(POLICY))
  for (const [name, sources] of Object.entries(additions)) {
    directives.set(name, [...(directives.get(name) ?? []), ...sources])
  }
  const policy = [...directives].map(([name, sources]) => [name, ...sources].join(' ')).join('; ')
  return { ...COMMON, 'content-security-policy': policy }
}

export const HTML_TYPE = 'text/html; charset=utf-8'

/** What a panel is asked with. */
export interface View {
  /** What the page may read from: a panel that read from elsewhere would be shown after that had changed. */
  sources: PageSources
  now: Instant
  query: PageQuery
}

/** What a panel's reader is told instead of its content. */
export interface PanelRefusal {
  status: number
  /** The public code, that of the interface the panel shows. */
  code: string
  /** When this code is given. */
  when: string
  /** What can be asked instead, where the panel knows. */
  help?: Html
  /** True for what is no fault of the server, whatever the status: it is not logged as an error. */
  expected?: boolean
  /** `Retry-After`, where the refusal says when to ask again. */
  headers?: Readonly<Record<string, string>>
}

/** A content with what the page says of it elsewhere. */
export interface PanelContent {
  /** Another than 200 where the question was sound, and there is nothing. */
  status: number
  content: Html
  /** What is shown, as a part of the page's title. */
  title?: string
}

/**
 * A room of the page (docs/architecture.md): a section with an anchor, a heading, and content that is read through what
 * the interface itself reads through.
 */
export interface Panel {
  /** Anchor, and id of the section. */
  id: string
  title: string
  /** Parameters of the address that are this panel's. Values that are empty are never handed over. */
  params: readonly string[]
  /** True for a value of its parameters that shows the same as none. */
  isDefault?: (name: string, value: string, params: URLSearchParams) => boolean
  /** What stands under the heading even where there is no content: how to ask for something else. */
  controls?(view: View): Html
  /** The content under the controls. What it throws is shown as `refusalOf` says, and nothing in its place. */
  render(view: View): Promise<Html | PanelContent>
  /**
   * The address by which this question is asked, where a form cannot make it itself; null when it is asked by it already.
   * Whatever it throws, `render` throws too.
   */
  redirect?: (view: View) => Promise<string | null>
  refusalOf(error: unknown, view: View): PanelRefusal
}

/** How a panel tells what its interface would refuse with. */
export function refusalsOf<Code extends string>(contract: Contract<Code>): (error: unknown) => PanelRefusal {
  return (error) => {
    const code = codeOf(contract, error)
    const { status, when, expected = false } = contract.refusals[code]
    const headers = error instanceof Refusal && error.code === code ? retryAfter(error.members) : {}
    return { status, code, when, expected, headers }
  }
}

/** New values of parameters; null takes one away. */
type QueryChanges = Readonly<Record<string, string | null>>

/** The parameters of the page's address, those of all its panels together. */
export interface PageQuery {
  /** The values given for known parameters, in one order, empty ones and defaults left out. */
  params: URLSearchParams
  /**
   * Address of the page with some parameters changed, every other kept.
   *
   * @param anchor id of the element to go to
   */
  link(changes: QueryChanges, anchor: string): string
  /** A link by which scripts replace that room alone. @param attributes further ones of the element */
  sectionLink(section: string, changes: QueryChanges, text: Html | string, attributes?: Html): Html
  /** Hidden fields by which a form keeps every parameter but those it sends itself. */
  hiddenFields(sentByForm: readonly string[]): Html
}

/** Which parameters a page has. */
export interface QueryRules {
  /** Names, in the order in which every query is brought; others are dropped. */
  known: readonly string[]
  /** True for a value that shows the same as none. */
  isDefault?: (name: string, value: string, params: URLSearchParams) => boolean
  /** Most bytes of all known parameters together, where every link of the page repeats them. */
  linkQueryMaxBytes?: number
}

/**
 * Queries that show the same page become equal: known parameters alone, in one order, without empty values and defaults.
 *
 * @param received the query as parsed
 * @param path of the page
 */
export function pageQuery(
  received: URLSearchParams,
  { known, isDefault }: QueryRules = { known: [] },
  path = '/',
): PageQuery {
  const all = known.flatMap((name) => received.getAll(name).map((value): [string, string] => [name, value]))
  const withoutEmpty = new URLSearchParams(all.filter(([, value]) => value !== ''))
  const params = new URLSearchParams(
    [...withoutEmpty].filter(([name, value]) => !isDefault?.(name, value, withoutEmpty)),
  )
  const link = (changes: QueryChanges, anchor: string): string => {
    const changed = new URLSearchParams(params)
    for (const [name, value] of Object.entries(changes)) {
      if (value === null) changed.delete(name)
      else changed.set(name, value)
    }
    return `${path}${changed.size > 0 ? `?${String(changed)}` : ''}#${anchor}`
  }
  return {
    params,
    link,
    sectionLink: (section, changes, text, attributes = NOTHING) =>
      html`<a href="${link(changes, section)}" data-section="${section}" ${attributes}>${text}</a>`,
    hiddenFields(sentByForm) {
      const others = [...params].filter(([name]) => !sentByForm.includes(name))
      return html`${others.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`)}`
    },
  }
}

/** Path of the page of one item. */
export const ITEM_PATH = '/item'

/** Address of an item's page. @param key save key */
export function itemHref(key: string): string {
  return `${ITEM_PATH}?${String(new URLSearchParams({ key }))}`
}
