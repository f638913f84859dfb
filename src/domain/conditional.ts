/**
 * Whether an `If-None-Match` field names the current representation (RFC 9110, 13.1.2): weak comparison, `*`,
 * and lists. Several header lines arrive joined by commas.
 *
 * @param field the field's value, or null when the request has none
 * @param etag the current strong entity tag, quotes included
 */
export function matchesEntityTag(field: string | null, etag: string): boolean {
  if (field === null) return false
  const elements = field.match(/(?:"[^"]*"|[^",])+/g) ?? []
  return elements.some((element) => {
    const tag = /^(?:W\/)?("[^"]*")$/.exec(element.trim())?.[1]
    return tag === etag || element.trim() === '*'
  })
}
