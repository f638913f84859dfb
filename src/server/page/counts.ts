const FORMAT = new Intl.NumberFormat('en')

/** A number as people read it, `12,345`. */
export function formatCount(count: number): string {
  return FORMAT.format(count)
}

/** A number with what it counts: `1 comment`, `12,345 comments`. The plural of what does not end in s stays. */
export function counted(count: number, plural: string): string {
  return `${FORMAT.format(count)} ${count === 1 ? plural.replace(/s$/, '') : plural}`
}
