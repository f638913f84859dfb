/** What came from a keyboard: keys, or text that was pasted. */
export type Typed = { kind: 'keys'; text: string } | { kind: 'paste'; text: string }

const PASTE_BEGINS = '\x1b[200~'
const PASTE_ENDS = '\x1b[201~'

/** A paste longer than this is taken as ended: its end may never come. */
const PASTE_MAX_LENGTH = 1_000_000

/**
 * Tells what was pasted from what was typed (bracketed paste), however the input is cut. Where a terminal does not mark
 * a paste, a line end with more behind it in the same piece of input is one: nobody types that fast.
 */
export function typedInput(): { push(chunk: string): Typed[] } {
  let held = ''
  let pasted: string | null = null

  const keys = (text: string): Typed[] => {
    if (text === '') return []
    const body = text.replace(/[\r\n]+$/, '')
    if (!/[\r\n]/.test(body)) return [{ kind: 'keys', text }]
    const ends: Typed[] = body.length < text.length ? [{ kind: 'keys', text: '\r' }] : []
    return [{ kind: 'paste', text: body }, ...ends]
  }

  return {
    push(chunk) {
      let text = held + chunk
      held = ''
      const found: Typed[] = []
      while (text !== '') {
        const mark = pasted === null ? PASTE_BEGINS : PASTE_ENDS
        const at = text.indexOf(mark)
        const end = at === -1 ? text.length - heldBack(text, mark) : at
        const before = text.slice(0, end)
        if (pasted === null) found.push(...keys(before))
        else pasted += before
        if (pasted !== null && (at !== -1 || pasted.length > PASTE_MAX_LENGTH)) {
          found.push({ kind: 'paste', text: pasted })
          pasted = null
        } else if (at !== -1) pasted = ''
        if (at === -1) {
          held = text.slice(end)
          break
        }
        text = text.slice(at + mark.length)
      }
      return found
    },
  }
}

/** How much of the end of a text could be the beginning of a mark; outside of a paste a lone escape is a key. */
function heldBack(text: string, mark: string): number {
  const least = mark === PASTE_ENDS ? 1 : 2
  for (let length = Math.min(mark.length - 1, text.length); length >= least; length -= 1) {
    if (text.endsWith(mark.slice(0, length))) return length
  }
  return 0
}
