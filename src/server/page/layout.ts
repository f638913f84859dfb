import { withoutOverrides } from '../../domain/text.ts'
import { dayOf } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import type { Assets } from './assets.ts'
import { NOTHING, html } from './html.ts'
import type { Html } from './html.ts'

export interface Frame {
  assets: Assets
  demo: boolean
  /** Public URL of the server, without a trailing slash. */
  baseUrl: () => string
  /** URL of the script of the human challenge; null if no verification is required. */
  widgetUrl: string | null
}

export interface PageContent {
  title: string
  head: Html
  /** The tabs of the header, if they keep the state of the page. */
  tabs?: Html
  main: Html
  /** Null or absent: a general description. */
  preview?: Preview | null
  /** What the chat answers about; nothing offers it if it is off. Default: off. */
  chat?: ChatOffer
  /** What a print names besides the site: the path and query of the page, and its day. */
  printed?: { path: string; at: Instant }
  /** Set for a frame on the page of another site: its colours, without header and footer. */
  embedded?: 'auto' | 'light' | 'dark'
}

/** `items`: the chat answers about single items, too. */
export type ChatOffer = 'off' | 'site' | 'items'

/** Renders a whole page around its content: skip link, header, landmarks, footer. */
export function layout(
  { assets, demo, baseUrl }: Frame,
  { title, head, tabs = TABS_TO_HOME, main, preview = null, chat = 'off', printed, embedded }: PageContent,
): string {
  const name = withoutOverrides(demo ? `DEMO: ${title}` : title)
  return html`<!doctype html>
    <html
      lang="en"
      ${chat === 'items' ? html`class="item-chat"` : NOTHING}
      ${embedded === undefined ? NOTHING : themeOf(embedded)}
    >
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${name}</title>
        ${previewTags(baseUrl(), name, preview)}
        <link rel="icon" type="image/svg+xml" href="${assets.href('icon.svg')}" />
        <link rel="stylesheet" href="${assets.href('page.css')}" />
        <script src="${assets.href('theme.js')}"></script>
        <script type="module" src="${assets.href('page.js')}"></script>
        ${head}
      </head>
      <body>
        ${embedded === undefined ? html`<a class="skip" href="#main">Skip to the content</a>` : NOTHING}
        ${embedded === undefined ? pageHeader(demo, tabs, chat !== 'off') : NOTHING}
        ${printed ? html`<p class="printed">${demo ? 'DEMO: ' : ''}dash · ${baseUrl()}${printed.path} · ${dayOf(printed.at)}</p>` : NOTHING}
        <main id="main" tabindex="-1">${main}</main>
        ${embedded === undefined ? pageFooter(chat !== 'off') : NOTHING}
        <p id="announcements" class="unseen" role="status"></p>
      </body>
    </html> `.html
}

/** What previews of a link show of a page: those of search engines, chats and social networks. */
export interface Preview {
  /** One or two sentences of plain text. */
  description: string
  /** Path and query of the page. A view of the Year names its moment. */
  path: string
}

/** Description of a page that has no own one. */
const ABOUT =
  'Trends of Hacker News, Lobsters and LessWrong, the Top Year as it was on any day with its proof, and the free language model to use today.'

/** The elements of the head that describe a page to previews (Open Graph). URLs are absolute, as previews need them. */
function previewTags(baseUrl: string, title: string, preview: Preview | null): Html {
  const { description, path } = preview ?? { description: ABOUT, path: null }
  const tag = (name: string, value: string): Html => html`<meta property="og:${name}" content="${value}" />`
  return html`<meta name="description" content="${withoutOverrides(description)}" /> ${tag('type', 'website')}
    ${tag('site_name', 'dash')} ${tag('title', title)} ${tag('description', withoutOverrides(description))}
    ${path === null ? NOTHING : tag('url', baseUrl + path)}`
}

/** Names the first items of a list, for the end of the description of a page; empty without items. */
export function firstTitles(items: readonly { title: string }[]): string {
  const titles = items.slice(0, 3).map(({ title }, index) => `${index + 1}. ${title}`)
  return titles.length === 0 ? '' : `: ${titles.join(' · ')}`
}

/** Colours that no choice stored by this browser changes. */
function themeOf(theme: 'auto' | 'light' | 'dark'): Html {
  return theme === 'auto' ? html`data-theme-fixed` : html`data-theme-fixed data-theme="${theme}"`
}

/** Headers of every HTML response except its policy (docs/page.md). */
const COMMON = {
  'cache-control': 'no-cache',
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

/** Directives of the content security policy; everything else is forbidden. */
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

/** Further sources of a page, by directive. */
export type PolicyAdditions = Readonly<Record<string, readonly string[]>>

export const PAGE_HEADERS = pageHeaders({})

/** Headers of a page, with external sources added to the policy. */
export function pageHeaders(additions: PolicyAdditions): Readonly<Record<string, string>> {
  const directives = new Map<string, readonly string[]>(Object.entries(POLICY))
  for (const [name, sources] of Object.entries(additions)) {
    const allowed = (directives.get(name) ?? []).filter((source) => source !== "'none'")
    directives.set(name, [...allowed, ...sources])
  }
  const policy = [...directives].map(([name, sources]) => [name, ...sources].join(' ')).join('; ')
  return { ...COMMON, 'content-security-policy': policy }
}

export const HTML_TYPE = 'text/html; charset=utf-8'

/** New values of parameters; null removes one. */
type QueryChanges = Readonly<Record<string, string | null>>

export interface PageQuery {
  /** Values of known parameters in a fixed order, without empty ones and defaults. */
  params: URLSearchParams
  /**
   * URL of the page with some parameters changed and the others kept.
   *
   * @param anchor id of the target element; without one, a redirect keeps that of its request
   */
  link(changes: QueryChanges, anchor?: string): string
  /** A link to a section with some parameters changed. @param attributes further attributes of the element */
  sectionLink(section: string, changes: QueryChanges, text: Html | string, attributes?: Html): Html
  /** Hidden fields by which a form keeps all parameters except those it sends itself. */
  hiddenFields(sentByForm: readonly string[]): Html
}

export interface QueryRules {
  /** Names in canonical order; other parameters are dropped. */
  known: readonly string[]
  /** True if a value shows the same page as no value. */
  isDefault?: (name: string, value: string, params: URLSearchParams) => boolean
}

/**
 * Normalises a query, so that queries of the same page are equal: known parameters in a fixed order, without empty values
 * and defaults.
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
  const link = (changes: QueryChanges, anchor?: string): string => {
    const changed = new URLSearchParams(params)
    for (const [name, value] of Object.entries(changes)) {
      if (value === null) changed.delete(name)
      else changed.set(name, value)
    }
    const fragment = anchor === undefined ? '' : `#${anchor}`
    return `${path}${changed.size > 0 ? `?${String(changed)}` : ''}${fragment}`
  }
  return {
    params,
    link,
    sectionLink: (section, changes, text, attributes = NOTHING) =>
      html`<a href="${link(changes, section)}" ${attributes}>${text}</a>`,
    hiddenFields(sentByForm) {
      const others = [...params].filter(([name]) => !sentByForm.includes(name))
      return html`${others.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`)}`
    },
  }
}

export const ITEM_PATH = '/item'

export function itemHref(key: string): string {
  return withQuery(ITEM_PATH, { key })
}

export function withQuery(path: string, params: Readonly<Record<string, string>>): string {
  return `${path}?${String(new URLSearchParams(params))}`
}

/** The notice of the demo, in the header of every page and on the status page. */
export const DEMO_NOTICE =
  'DEMO: a bundled sample of real items, news of 2020-2021 and projects of 2025, shifted in time, most of them on their day of publication. Nothing here is current; all of it is deleted when the server stops.'

export const PERIOD_TITLES = {
  trending: 'Trending',
  day: 'Day',
  week: 'Week',
  month: 'Month',
  year: 'Year',
} as const
export type Period = keyof typeof PERIOD_TITLES

export function periodTabs(link: (period: Period, title: string) => Html): Html {
  const periods = Object.entries(PERIOD_TITLES) as [Period, string][]
  return html`<nav class="tabs" id="periods" aria-label="Periods">
    <ul>
      ${periods.map(([period, title]) => html`<li>${link(period, title)}</li>`)}
    </ul>
  </nav>`
}

const TABS_TO_HOME = periodTabs((period, title) => html`<a href="/?sort=${period}">${title}</a>`)

const SECTION_LINKS = html`<ul>
  <li><a href="/models">Models</a></li>
  <li><a href="/status">Status</a></li>
  <li><a href="/docs">Docs</a></li>
</ul>`

export const CHAT_PATH = '/chat'

function pageHeader(demo: boolean, tabs: Html, hasChat: boolean): Html {
  return html`<header class="top">
    <a class="brand" href="/">dash</a>
    ${demo ? DEMO_PILL : NOTHING} ${tabs} ${searchForm('q')}
    ${hasChat ? html`<a class="ask" href="${CHAT_PATH}" data-chat="open">Ask</a>` : NOTHING}
    <nav class="sections" aria-label="Sections">${SECTION_LINKS}</nav>
    ${PAGE_MENU}
  </header>`
}

/** `name` makes the browser open one menu at a time. */
const DEMO_PILL = html`<details class="menu demo" name="menu">
  <summary>DEMO<span class="unseen">: about this sample</span></summary>
  <p role="note">${DEMO_NOTICE}</p>
</details>`

export const SEARCH_PATH = '/search'

/** @param id id of the field, unique on the page */
export function searchForm(id: string): Html {
  return html`<form
    class="search"
    role="search"
    action="${SEARCH_PATH}"
    method="get"
    aria-labelledby="${id}-label"
  >
    <label class="unseen" for="${id}" id="${id}-label">Search${id === 'q' ? '' : ' again'}</label>
    <input type="search" id="${id}" name="q" placeholder="Search" required />
    <button type="submit">
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <circle cx="7" cy="7" r="4.5" />
        <path d="m10.5 10.5 4 4" /></svg
      ><span class="unseen">Search</span>
    </button>
  </form>`
}

/**
 * The colours, and the pages for screens without room for them in the header. The switch works with CSS alone; a script
 * only stores the choice.
 */
const PAGE_MENU = html`<details class="menu theme" name="menu">
  <summary>
    <svg viewBox="0 0 16 16" aria-hidden="true">
      <path d="M2 2.75h12v1.5H2zm0 4.5h12v1.5H2zm0 4.5h12v1.5H2z" /></svg
    ><span class="unseen">Menu: colours and pages</span>
  </summary>
  <div>
    <fieldset>
      <legend>Colours</legend>
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
    </fieldset>
    <nav class="jump" aria-label="Pages">${SECTION_LINKS}</nav>
  </div>
</details>`

function pageFooter(hasChat: boolean): Html {
  return html`<footer class="foot">
    <nav aria-label="All pages">
      <ul>
        <li><a href="/models">Free models</a></li>
        <li><a href="/status">Status</a></li>
        ${hasChat ? html`<li><a href="${CHAT_PATH}">Chat</a></li>` : NOTHING}
        <li><a href="/docs">Documentation</a></li>
        <li class="needs-script"><button type="button" data-help>Keys and hidden stories</button></li>
      </ul>
    </nav>
  </footer>`
}
