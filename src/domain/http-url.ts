/**
 * True when a text parses as an absolute http or https URL (docs/importing.md).
 *
 * The constructor is asked, not `URL.canParse`, which on Node 20 and 22 refuses some valid hosts after it has been
 * called often (`https://\u00ef.at`).
 */
export function isHttpUrl(text: string): boolean {
  try {
    return /^https?:$/.test(new URL(text).protocol)
  } catch {
    return false
  }
}
