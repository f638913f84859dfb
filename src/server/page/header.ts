import { NOTHING, html } from './html.ts'
import type { Html } from './html.ts'

/** The notice of the demo, in the header of every page and on the status page. */
export const DEMO_NOTICE =
  'DEMO: a bundled sample of real items from 2020-2021, shifted in time, most of them on their day of publication. Nothing here is current; all of it is deleted when the server stops.'

export const PERIOD_TITLES = {
  trending: 'Trending',
  day: 'Day',
  week: 'Week',
  month: 'Month',
  year: 'Year',
} as const
export type Period = keyof typeof PERIOD_TITLES

/** The tabs of the periods. @param link makes the link of one period */
export function periodTabs(link: (period: Period, title: string) => Html): Html {
  const periods = Object.entries(PERIOD_TITLES) as [Period, string][]
  return html`<nav class="tabs" id="periods" aria-label="Periods">
    <ul>
      ${periods.map(([period, title]) => html`<li>${link(period, title)}</li>`)}
    </ul>
  </nav>`
}

/** The tabs of every page except the home page. */
export const TABS_TO_HOME = periodTabs((period, title) => html`<a href="/?sort=${period}">${title}</a>`)

/** Pages beside the home page. */
const SECTION_LINKS = html`<ul>
  <li><a href="/models">Models</a></li>
  <li><a href="/status">Status</a></li>
  <li><a href="/docs">Docs</a></li>
</ul>`

export const CHAT_PATH = '/chat'

/** The header of every page: name, periods, search, chat if it is on, and colours. */
export function pageHeader(demo: boolean, tabs: Html, hasChat: boolean): Html {
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

/** The footer of every page: all pages, and the keys. @param hasChat true if the server has a chat */
export function pageFooter(hasChat: boolean): Html {
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
