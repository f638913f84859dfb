/**
 * A value as one line of JSON that no terminal obeys: control, bidirectional and other hidden characters are written as
 * escapes, which a reader of JSON reads as what they stand for.
 */
export function jsonLine(value: unknown): string {
  const text = JSON.stringify(value).replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) =>
    [...Array(character.length).keys()]
      .map((index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`)
      .join(''),
  )
  return `${text}\n`
}
