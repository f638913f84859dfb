/**
 * Whether an `If-None-Match` field names the current representation (RFC 9110, 13.1.2): weak comparison, `*`,
 * and lists. Several header lines arrive joined by commas.
 *
 * @param field the field's value, or null when the request has none
 * @param etag the current strong entity tag, quotes included
 */
export function matchesEntityTag(field: string | null, etag: string): boolean {
  if (field === null) return false
  const tags: string[] = field.match(/"[^"]*"/g) ?? []
  const others = field.replaceAll(/"[^"]*"/g, '').split(',')
  return tags.includes(etag) || others.some((element) => element.trim() === '*')
}
