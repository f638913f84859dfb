import { DAY_MS, formatInstant } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'

/** A piece of HTML that needs no further escaping. */
export interface Html {
  readonly html: string
}

/** Template tag: every interpolated string is escaped, pieces of HTML and lists of them are not. */
export function html(
  parts: TemplateStringsArray,
  ...values: (string | number | Html | readonly Html[])[]
): Html {
  return { html: parts.reduce((text, part, index) => text + render(values[index - 1] ?? '') + part) }
}

/** A text with `code` in backticks, as contracts have them, as HTML. */
export function codeSpans(text: string): Html {
  const parts = text.split('`')
  return html`${parts.map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : html`${part}`))}`
}

/** Nothing at all: what is left out. */
export const NOTHING: Html = { html: '' }

function render(value: string | number | Html | readonly Html[]): string {
  if (typeof value === 'string') return escape(value)
  if (typeof value === 'number') return String(value)
  return 'html' in value ? value.html : value.map((piece) => piece.html).join('')
}

function escape(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;')
}

/** A text to copy. */
interface Copyable {
  /** Id of the text on the page. */
  id: string
  caption: string
  /** What the button copies, for those who only hear it: `the line for curl`. */
  copiedThing: string
  text: string
}

/** A text to copy under its caption, with a button where a script can copy it. */
export function copyable({ id, caption, copiedThing, text }: Copyable): Html {
  return html`<figure class="snippet">
    <figcaption>
      ${caption}
      <button type="button" class="needs-script" data-copy="${id}">
        Copy<span class="unseen"> ${copiedThing}</span>
      </button>
    </figcaption>
    <pre tabindex="0"><code id="${id}">${text}</code></pre>
  </figure>`
}

/** A text between single quotes, which no shell looks into. */
export function shellText(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}

const COUNT_FORMAT = new Intl.NumberFormat('en')

/** A number as people read it, `12,345`. */
export function formatCount(count: number): string {
  return COUNT_FORMAT.format(count)
}

/** A number with what it counts: `1 comment`, `12,345 comments`. The plural of what does not end in s stays. */
export function formatCounted(count: number, plural: string): string {
  return `${COUNT_FORMAT.format(count)} ${count === 1 ? plural.replace(/s$/, '') : plural}`
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

/** Each unit of an age, with the age from which the next larger one is used. */
const AGE_UNITS: readonly (readonly [name: string, ms: number, below: number])[] = [
  ['min', MINUTE_MS, HOUR_MS],
  ['h', HOUR_MS, 2 * DAY_MS],
  ['d', DAY_MS, 90 * DAY_MS],
  ['months', 30 * DAY_MS, 720 * DAY_MS],
]

/** How long ago, in the largest unit that still tells: `under a minute`, `35 min`, `7 h`, `12 d`, `5 months`, `3 years`. */
function formatAge(ageMs: number): string {
  const age = Math.max(0, ageMs)
  if (age < MINUTE_MS) return 'under a minute'
  const [name, ms] = AGE_UNITS.find(([, , below]) => age < below) ?? ['years', 365 * DAY_MS]
  return `${Math.floor(age / ms)} ${name}`
}

/** The age of an instant, with the instant itself for machines and for whoever points at it. */
export function ageOf(at: Instant, now: Instant): Html {
  const iso = formatInstant(at)
  return html`<time datetime="${iso}" title="${formatMinute(at)}">${formatAge(now - at)} ago</time>`
}

/** An instant to the minute, `2026-03-02 00:10 UTC`, with the instant itself for machines. */
export function instantOf(at: Instant): Html {
  return html`<time datetime="${formatInstant(at)}">${formatMinute(at)}</time>`
}

/** An instant to the minute as plain text, where no element can stand. */
export function formatMinute(at: Instant): string {
  return `${formatInstant(at).slice(0, 16).replace('T', ' ')} UTC`
}
