import { webAddress } from '../../hyperlink.ts'
import { wrap } from './wrap.ts'
import type { Row, Span } from './wrap.ts'

/** Web page that an answer links to. */
interface Source {
  /** Position among the sources of the answer, from 1. */
  number: number
  name: string
  address: string
}

/** The sources of an answer, in the order of their first links. */
export class Sources {
  readonly #byAddress = new Map<string, Source>()

  /** Adds a link and returns its source; null unless it leads to a web page. */
  add(href: string, label: string): Source | null {
    const address = webAddress(href)
    if (address === null) return null
    const name = label.replaceAll(/\s+/g, ' ').trim()
    const source = this.#byAddress.get(address) ?? { number: this.#byAddress.size + 1, name, address }
    this.#byAddress.set(address, source)
    return source
  }

  /**
   * Returns the list of sources: names with their addresses, or names that are links beside their hosts.
   *
   * @param linked true if the terminal knows hyperlinks
   */
  rows({ columns, colored, linked }: { columns: number; colored: boolean; linked: boolean }): Row[] {
    return [...this.#byAddress.values()].flatMap(({ number, name, address }) => {
      const mark = `[${number}] `
      const spans = linked ? linkedSpans(name, address) : plainSpans(name, address)
      const indent = { first: mark, rest: ' '.repeat(mark.length) }
      return wrap(spans, columns, { indent, colored })
    })
  }
}

function linkedSpans(name: string, address: string): Span[] {
  const host: Span = { text: ` (${new URL(address).host})`, styles: ['dim'] }
  const label: Span = { text: name === '' ? address : name, styles: ['underline'], link: address }
  return isSame(name, address) ? [label] : [label, host]
}

function plainSpans(name: string, address: string): Span[] {
  const spans: Span[] = [{ text: address, styles: ['underline'] }]
  return isSame(name, address) ? spans : [{ text: `${name} `, styles: [] }, ...spans]
}

/** True for a link whose text is its address, or that has none. */
function isSame(name: string, address: string): boolean {
  return name === '' || webAddress(name) === address
}
