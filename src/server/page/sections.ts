import { describedError } from '../route.ts'
import type { Contract } from '../route.ts'
import { NOTHING, codeSpans, html } from './html.ts'
import type { Html } from './html.ts'
import { HTML_TYPE, PAGE_HEADERS, layout } from './layout.ts'
import type { ChatOffer, PageContent, Preview } from './layout.ts'
import type { MountPage, Page, PageSources, View } from './rendered-pages.ts'

/** The refusal shown instead of a section's content. */
export interface SectionRefusal {
  status: number
  /** The public code of the interface that the section shows. */
  code: string
  /** The cause of the refusal. */
  when: string
  /** Alternatives offered to the visitor. */
  help?: Html
  /** True if the refusal is not a fault of the server: it is not logged as an error. */
  expected?: boolean
  /** `Retry-After`, if the refusal is temporary. */
  headers?: Readonly<Record<string, string>>
}

export interface SectionContent {
  /** Not 200 if the request was valid but there is nothing to show. */
  status: number
  /** Shown between the heading and the controls. */
  above?: Html
  content: Html
  /** Part of the page's title. */
  title?: string
  preview?: Preview
}

export interface Section extends SectionContent {
  headers?: Readonly<Record<string, string>>
  isRefused?: true
}

interface SectionFrame {
  /** Anchor, and id of the element. */
  id: string
  title: string
  /** Level of its heading: 1 for the only section of a page. */
  headingLevel?: 1 | 2
  /** Shown under the heading, also above a refusal. */
  controls?: Html
  refusalOf: (error: unknown, view: View) => SectionRefusal
}

/**
 * Renders a section with an anchor and a heading.
 *
 * @param render content from the readers of the interfaces; null leaves the section out. An error is shown as the refusal
 *   of `refusalOf`.
 */
export async function section(
  view: View,
  { id, title, headingLevel = 2, controls = NOTHING, refusalOf }: SectionFrame,
  render: () => Promise<Html | SectionContent | null>,
): Promise<Section | null> {
  const heading = `h${headingLevel}`
  const framed = (content: Html, above = NOTHING): Html =>
    html`<section id="${id}" class="section" aria-labelledby="${id}-title">
      <${heading} id="${id}-title">${title}</${heading}>
      ${above} ${controls} ${content}
    </section>`
  try {
    const result = await render()
    if (result === null) return null
    if ('status' in result) return { ...result, content: framed(result.content, result.above) }
    return { status: 200, content: framed(result) }
  } catch (err) {
    const refusal = refusalOf(err, view)
    const { status, code, headers = {}, expected = false } = refusal
    if (status >= 500 && !expected)
      view.log.error({ requestId: view.requestId, code, panel: id, err }, 'panel refused')
    return { status, headers, content: framed(refusalNotice(refusal)), isRefused: true }
  }
}

function refusalNotice({ code, when, help = NOTHING }: SectionRefusal): Html {
  return html`<p class="refusal" role="alert">
      This section cannot be shown: <code>${code}</code>, ${codeSpans(when)}.
    </p>
    ${help}`
}

/**
 * Makes `refusalOf` of a section from the contract of its interface.
 *
 * @param own refusals of the page itself, also in place of those of the interface
 */
export function refusalsOf<Code extends string, Own extends string = never>(
  contract: Contract<Code>,
  own?: Contract<Own>['refusals'],
): (error: unknown) => SectionRefusal {
  const refusals = { ...contract.refusals, ...own } as Contract<Code | Own>['refusals']
  return (thrown) => {
    const described = describedError<Code | Own>({ ...contract, refusals }, thrown)
    const { status, error: code, message: when, expected = false, headers } = described
    return { status, code, when, expected, headers }
  }
}

interface SectionsShown extends Partial<PageContent> {
  title: string
  /** In display order; null for one that is left out. The page shows them unless it has its own content. */
  sections?: readonly (Section | null)[]
  /** The page has its status and preview, unless another section has a 4xx status; default: the first one. */
  lead?: Section | null
}

/** A page of sections, which works without scripts. */
export interface SectionPage extends Pick<Page, 'path' | 'query'> {
  /** Headers with the content security policy of the sections; default: without external sources. */
  headers?: Readonly<Record<string, string>>
  /** Renders the sections, or returns the canonical URL of a request that a form cannot build itself. */
  render(view: View): Promise<SectionsShown | { location: string }>
}

export function htmlOf(sections: readonly (Section | null)[]): Html {
  return html`${sections.map((each) => each?.content ?? NOTHING)}`
}

/** Mounts a page of sections. A section that fails shows its public code and leaves the others as they are. */
export function mountSections(mount: MountPage, page: SectionPage): void {
  const { path, query, headers = PAGE_HEADERS } = page
  mount({
    path,
    ...(query && { query }),
    async render(view) {
      const [chat, shown] = await Promise.all([chatOffer(view.sources), page.render(view)])
      if ('location' in shown)
        return { status: 303, headers: { ...headers, location: shown.location }, text: '' }
      const { sections = [], lead = sections[0], ...content } = shown
      const refused = sections.find((each) => each && each.status >= 400 && each.status < 500)
      const { status = 200, headers: refusalHeaders } = refused ?? lead ?? {}
      const text = layout(view.frame, {
        head: NOTHING,
        main: htmlOf(sections),
        preview: lead?.preview ?? null,
        chat,
        printed: { path: view.query.link({}), at: view.now },
        ...content,
      })
      return {
        status,
        headers: { ...headers, ...refusalHeaders, 'content-type': HTML_TYPE },
        text,
        isPartial: sections.some((each) => each?.isRefused),
      }
    },
  })
}

/** What the chat answers about now; nothing if that cannot be read. */
export async function chatOffer({ agent }: PageSources): Promise<ChatOffer> {
  try {
    const { enabled, itemChat } = await agent.config()
    if (!enabled) return 'off'
    return itemChat ? 'items' : 'site'
  } catch {
    return 'off'
  }
}
