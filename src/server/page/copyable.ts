import { html } from './html.ts'
import type { Html } from './html.ts'

/** A text to copy. */
interface Copyable {
  /** Id of the text on the page. */
  id: string
  caption: string
  /** What the button copies, for those who only hear it: `the line for curl`. */
  what: string
  text: string
}

/** A text to copy under its caption, with a button where a script can copy it. */
export function copyable({ id, caption, what, text }: Copyable): Html {
  return html`<figure class="snippet">
    <figcaption>
      ${caption}
      <button type="button" class="needs-script" data-copy="${id}">
        Copy<span class="unseen"> ${what}</span>
      </button>
    </figcaption>
    <pre tabindex="0"><code id="${id}">${text}</code></pre>
  </figure>`
}

/** A text between single quotes, which no shell looks into. */
export function shellText(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}
