import { Refusal } from '../../domain/refusal.ts'
import type { Instant } from '../../domain/time.ts'
import { codeOf, retryAfter } from '../route.ts'
import type { Contract } from '../route.ts'
import type { Html } from './html.ts'
import type { PageQuery } from './page-query.ts'

/** What a panel is asked with. */
export interface View {
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
export interface PanelAnswer {
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
  render(view: View): Promise<Html | PanelAnswer>
  /**
   * The address by which this question is asked, where a form cannot make it itself; null when it is asked by it already.
   * Whatever it throws, `render` throws too.
   */
  forward?: (view: View) => Promise<string | null>
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
