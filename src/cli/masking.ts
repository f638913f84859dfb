/** What stands for a secret wherever values are shown. */
export const NOT_SHOWN = '(not shown)'

/** Parameters of addresses that hold no secret by themselves; an `endpoint` is an address again. */
const SHOWN_PARAMETERS: ReadonlySet<string> = new Set(['endpoint', 'region', 'tls'])

/**
 * An address without whatever may be a secret in it: who asks, and every parameter that is not known to hold none. What
 * is no address is returned as it is.
 *
 * @param shown the address, in quotes or not
 */
export function withoutSecrets(shown: string): string {
  const [, open = '', text = '', close = ''] = /^("?)(.*?)("?)$/s.exec(shown) ?? []
  if (!/^\s*[a-z][a-z0-9+.-]*:/i.test(text) || /^\s*file:/i.test(text)) return shown
  const start = text.indexOf('?')
  const place = start === -1 ? text : text.slice(0, start)
  // To the last @: a secret may hold the slash that would end what is before it.
  const masked = place.replace(/\/\/.*@/s, `//${NOT_SHOWN}@`)
  const query =
    start === -1
      ? ''
      : `?${text
          .slice(start + 1)
          .split('&')
          .map(maskedParameter)
          .join('&')}`
  return `${open}${masked}${query}${close}`
}

function maskedParameter(parameter: string): string {
  const [name = '', ...rest] = parameter.split('=')
  const value = rest.join('=')
  if (rest.length === 0) return name === '' ? '' : NOT_SHOWN
  if (value === '') return parameter
  if (!SHOWN_PARAMETERS.has(name)) return `${name}=${NOT_SHOWN}`
  const decoded = decodedOf(value)
  if (decoded === null) return `${name}=${NOT_SHOWN}`
  const masked = withoutSecrets(decoded)
  return masked === decoded ? parameter : `${name}=${masked}`
}

function decodedOf(value: string): string | null {
  try {
    return decodeURIComponent(value)
  } catch {
    return null
  }
}
