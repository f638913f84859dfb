import { html } from './html.ts'
import type { Html } from './html.ts'

/** The parameters of the page's address, those of all its panels together. */
export interface PageQuery {
  /** The values given for known parameters, in one order, empty ones and defaults left out. */
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

/** Which parameters a page has. */
export interface QueryRules {
  /** Names, in the order in which every query is brought; others are dropped. */
  known: readonly string[]
  /** True for a value that shows the same as none. */
  isDefault?: (name: string, value: string, params: URLSearchParams) => boolean
  /** Most bytes of all known parameters together, where every link of the page repeats them. */
  carriedMax?: number
}

/**
 * Queries that show the same page become equal: known parameters alone, in one order, without empty values and defaults.
 *
 * @param given the query as parsed
 * @param path of the page
 */
export function pageQuery(
  given: URLSearchParams,
  { known, isDefault }: QueryRules = { known: [] },
  path = '/',
): PageQuery {
  const all = known.flatMap((name) => given.getAll(name).map((value): [string, string] => [name, value]))
  const stated = new URLSearchParams(all.filter(([, value]) => value !== ''))
  const params = new URLSearchParams([...stated].filter(([name, value]) => !isDefault?.(name, value, stated)))
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
