import type { Ran } from './example-session.ts'

/**
 * What of a shown output does not hold, or null. JSON: what standard output alone is; every member that is shown is there and
 * has the type that is shown (null fits all); of lists, the first element. Text: the lines stand in the output one after the
 * other, where numbers and digests may be others, `…` is anything within a line, and a line `…` or `[…]` any number of lines.
 */
export function outputFlaw(language: string, shown: string, { stdout, stderr }: Ran): string | null {
  if (language === 'json') {
    const printed = parsed(stdout)
    return printed === undefined
      ? `it prints no JSON:\n${stdout}`
      : shapeFlaw(parsed(shown), printed, 'the output')
  }
  const printed = stdout + stderr
  return textPattern(shown).test(printed.replaceAll(/[ \t]+$/gm, ''))
    ? null
    : `it prints\n${printed.trimEnd()}\ninstead of\n${shown.trimEnd()}`
}

/** The value of a JSON text; undefined when it is none. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

function shapeFlaw(shown: unknown, printed: unknown, path: string): string | null {
  if (shown === null || printed === null) return null
  if (kindOf(shown) !== kindOf(printed)) return `${path} is ${kindOf(printed)}, not ${kindOf(shown)}`
  if (Array.isArray(shown) && Array.isArray(printed)) {
    return shown.length === 0 || printed.length === 0 ? null : shapeFlaw(shown[0], printed[0], `${path}[0]`)
  }
  if (typeof shown !== 'object') return null
  for (const [name, value] of Object.entries(shown)) {
    if (!Object.hasOwn(printed as object, name)) return `${path}.${name} is not there`
    const flaw = shapeFlaw(value, (printed as Record<string, unknown>)[name], `${path}.${name}`)
    if (flaw !== null) return flaw
  }
  return null
}

function kindOf(value: unknown): string {
  return Array.isArray(value) ? 'a list' : typeof value
}

function textPattern(shown: string): RegExp {
  const lines = shown
    .trimEnd()
    .split('\n')
    .map((line) => {
      if (/^(?:…|\[…\])$/.test(line)) return '(?:.*\\n)*'
      const pattern = line
        .trimEnd()
        .replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')
        .replaceAll(/\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b/g, '\u0000')
        .replaceAll(/\d+/g, '\\d+')
        .replaceAll('\u0000', '[0-9a-f]+')
        .replaceAll('…', '.*')
      return `${pattern}\\n`
    })
  return new RegExp(`^${lines.join('').replace(/\\n$/, '(?:\\n|$)')}`, 'm')
}
