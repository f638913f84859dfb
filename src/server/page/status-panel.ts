import type { Log } from '../log.ts'
import { codeSpans, html, NOTHING } from './html.ts'
import type { Html } from './html.ts'
import type { Panel, PanelRefusal } from './panel.ts'

/** How what a fact says is to be taken; said in words too, never by colour alone. */
type Standing = 'good' | 'attention' | 'bad' | 'plain'

/** One thing a visitor may want to know first. */
export interface Fact {
  standing: Standing
  /** The fact in a few words. */
  value: Html
  /** What belongs to it, in small print. */
  detail: Html
}

/** A place in the strip. */
export interface StatusFact {
  label: string
  read(now: number): Promise<Fact>
  refusalOf(error: unknown): PanelRefusal
}

/** The status strip: every fact is read on its own, and one that cannot be read says why in its place. */
export function statusPanel(facts: readonly StatusFact[], log: Log): Panel {
  return {
    id: 'status',
    title: 'Status',
    params: [],
    async render({ now }) {
      const read = await Promise.all(
        facts.map(async (fact) => {
          try {
            return factOf(fact.label, await fact.read(now))
          } catch (error) {
            const refusal = fact.refusalOf(error)
            if (!refusal.expected)
              log.error({ code: refusal.code, fact: fact.label, err: error }, 'status without a fact')
            return factOf(fact.label, unreadable(refusal))
          }
        }),
      )
      return html`<dl class="facts">${read}</dl>`
    },
    refusalOf: () => ({ status: 500, code: 'internal_error', when: 'anything unexpected' }),
  }
}

function unreadable({ code, when }: PanelRefusal): Fact {
  return { standing: 'bad', value: html`<code>${code}</code>`, detail: codeSpans(when) }
}

const WORDS: Readonly<Record<Standing, Html>> = {
  good: html`<span class="mark" aria-hidden="true">✓</span>`,
  attention: html`<span class="mark" aria-hidden="true">!</span><span class="unseen">Look at this: </span>`,
  bad: html`<span class="mark" aria-hidden="true">✕</span><span class="unseen">Wrong: </span>`,
  plain: NOTHING,
}

function factOf(label: string, { standing, value, detail }: Fact): Html {
  return html`<div class="fact ${standing}">
    <dt>${label}</dt>
    <dd>${WORDS[standing]}${value}</dd>
    <dd class="detail">${detail}</dd>
  </div>`
}
