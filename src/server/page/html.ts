import { CLOCK_TOLERANCE_MS } from '../../domain/clock-check.ts'
import { withoutOverrides } from '../../domain/text.ts'
import { DAY_MS, formatInstant } from '../../domain/time.ts'
import type { Day, Instant } from '../../domain/time.ts'

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

/** Converts a text with `code` in backticks, as contracts have them, to HTML. */
export function codeSpans(text: string): Html {
  const parts = text.split('`')
  return html`${parts.map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : html`${part}`))}`
}

/** A text from outside, such as a title, whose direction and whose controls of direction change nothing around it. */
export function isolated(text: string | Html): Html {
  return { html: `<bdi>${withoutOverrides(render(text))}</bdi>` }
}

export const NOTHING: Html = { html: '' }

function render(value: string | number | Html | readonly Html[]): string {
  if (typeof value === 'string') return escape(value)
  if (typeof value === 'number') return String(value)
  return 'html' in value ? value.html : value.map((piece) => piece.html).join('')
}

const SPECIAL = /[&<>"']/

function escape(text: string): string {
  if (!SPECIAL.test(text)) return text
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;')
}

interface Copyable {
  /** Id of the text on the page. */
  id: string
  caption: string | Html
  /** Accessible name of the copied text: `the line for curl`. */
  copiedThing: string
  text: string
}

/** A snippet with its caption and a copy button, which needs a script. */
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

export function selectField(
  title: string,
  name: string,
  options: readonly (readonly [value: string, text: string])[],
  chosen = '',
): Html {
  return html`<label
    >${title}
    <select name="${name}">
      ${options.map(
        ([value, text]) =>
          html`<option value="${value}" ${value === chosen ? html`selected` : NOTHING}>${text}</option>`,
      )}
    </select></label
  >`
}

export function shellText(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}

const COUNT_FORMAT = new Intl.NumberFormat('en')

/** Formats a number, `12,345`. */
export function formatCount(count: number): string {
  return COUNT_FORMAT.format(count)
}

/** Formats a number with its unit: `1 comment`, `1 story`, `12,345 comments`. A unit without a final s is unchanged. */
export function formatCounted(count: number, plural: string): string {
  return `${COUNT_FORMAT.format(count)} ${count === 1 ? plural.replace(/ies$/, 'y').replace(/s$/, '') : plural}`
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

/** Units of an age, each with the age from which the next larger unit is used. */
const AGE_UNITS: readonly (readonly [name: string, ms: number, below: number])[] = [
  ['min', MINUTE_MS, HOUR_MS],
  ['h', HOUR_MS, 2 * DAY_MS],
  ['d', DAY_MS, 90 * DAY_MS],
  ['months', 30 * DAY_MS, 720 * DAY_MS],
]

/** Formats an age in its largest unit: `under a minute`, `35 min`, `7 h`, `12 d`, `5 months`, `3 years`. */
function formatAge(ageMs: number): string {
  const age = Math.max(0, ageMs)
  if (age < MINUTE_MS) return 'under a minute'
  const [name, ms] = AGE_UNITS.find(([, , below]) => age < below) ?? ['years', 365 * DAY_MS]
  return `${Math.floor(age / ms)} ${name}`
}

/**
 * The age of an instant, `7 h ago`, with the instant in `datetime` and `title`; an instant in the future, which a wrong
 * clock gave, is shown as such.
 */
export function ageOf(at: Instant, now: Instant): Html {
  const isAhead = at - now > CLOCK_TOLERANCE_MS
  return timed(at, isAhead ? `${formatMinute(at)}, in the future` : `${formatAge(now - at)} ago`)
}

/** The time from an instant to a later one in short, `7 h` or `5 mo`, with the first instant in `datetime` and `title`. */
export function ageAt(at: Instant, later: Instant): Html {
  return timed(at, formatAge(later - at).replace('months', 'mo'))
}

function timed(at: Instant, text: string): Html {
  return html`<time datetime="${formatInstant(at)}" title="${formatMinute(at)}">${text}</time>`
}

/** An instant to the minute, `2026-03-02 00:10 UTC`, with the instant in `datetime`. */
export function instantOf(at: Instant): Html {
  return html`<time datetime="${formatInstant(at)}">${formatMinute(at)}</time>`
}

const DAY_FORMAT = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  timeZone: 'UTC',
})

/** Formats a day: `4 Apr 2021`. */
export function formatDay(day: Day): string {
  return DAY_FORMAT.format(Date.parse(day))
}

/** Formats an instant to the minute as plain text. */
export function formatMinute(at: Instant): string {
  return `${formatInstant(at).slice(0, 16).replace('T', ' ')} UTC`
}
