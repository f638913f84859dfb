import { parseJson } from '../json.ts'

/** More levels of encoding or wrapping have no plain meaning. */
export const MAX_LEVELS = 4

/**
 * Decodes JSON, also if it is written with literals of Python or JavaScript, encoded again, in a fence, or surrounded by
 * other text. No text and null count as an empty object, and a list of one value as that value.
 *
 * @returns undefined if the text holds no JSON
 */
export function decodeJson(written: string): unknown {
  let value: unknown = written
  for (let level = 0; level < MAX_LEVELS && typeof value === 'string'; level += 1) {
    const text = value.trim()
    const inner = text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1)
    const decoded = [text, inner, asJson(inner || text)].map(parseJson).find((each) => each !== undefined)
    value = text === '' ? {} : decoded
  }
  return onlyValue(value) ?? (value === undefined ? undefined : {})
}

const WORDS: Readonly<Record<string, string>> = {
  None: 'null',
  undefined: 'null',
  NaN: 'null',
  True: 'true',
  False: 'false',
}

/** Converts literals of Python and JavaScript, and line ends within texts. */
function asJson(written: string): string {
  return written.replace(
    /"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|[A-Za-z_]\w*(\s*[:=])?|,(?=\s*[}\]])/gs,
    (token, double?: string, single?: string, colon?: string) => {
      if (token === ',') return ''
      const text = double ?? single
      if (text === undefined)
        return colon === undefined ? (WORDS[token] ?? token) : `"${token.slice(0, -colon.length)}":`
      return `"${text.replace(/\\'|(?<!\\)"|[\n\t\r]/g, (unit) => ESCAPES[unit] ?? unit)}"`
    },
  )
}

const ESCAPES: Readonly<Record<string, string>> = {
  "\\'": "'",
  '"': '\\"',
  '\n': '\\n',
  '\t': '\\t',
  '\r': '\\r',
}

function onlyValue(value: unknown): unknown {
  return Array.isArray(value) && value.length === 1 ? value[0] : value
}
