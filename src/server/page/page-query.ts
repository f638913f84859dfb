import { html } from './html.ts'
import type { Html } from './html.ts'

/** The parameters of the page's address, those of all its panels together. */
export interface PageQuery {
  /** The values given for known parameters, in their order, empty ones left out. */
  params: URLSearchParams
  /**
   * Address of the page with some parameters changed, every other kept.
   *
   * @param changes null takes a parameter away
   * @param anchor id of the element to go to
   */
  link(changes: Readonly<Record<string, string | null>>, anchor: string): string
  /** Hidden fields by which a form keeps every parameter but those it sends itself. */
  carry(own: readonly string[]): Html
}

/**
 * @param given the query as parsed
 * @param known names of every panel's parameters; others are dropped
 * @param path of the page
 */
export function pageQuery(given: URLSearchParams, known: readonly string[], path = '/'): PageQuery {
  const params = new URLSearchParams(
    [...given].filter(([name, value]) => known.includes(name) && value !== ''),
  )
  return {
    params,
    link(changes, anchor) {
      const changed = new URLSearchParams(params)
      for (const [name, value] of Object.entries(changes)) {
        if (value === null) changed.delete(name)
        else changed.set(name, value)
      }
      return `${path}${changed.size > 0 ? `?${String(changed)}` : ''}#${anchor}`
    },
    carry(own) {
      const kept = [...params].filter(([name]) => !own.includes(name))
      return html`${kept.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`)}`
    },
  }
}
