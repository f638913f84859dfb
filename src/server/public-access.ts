import { NO_STORE } from './respond.ts'
import type { Contract } from './route.ts'

/**
 * What the contracts of all public routes share: pages of any origin may read them, and every answer names its
 * description.
 *
 * @param docs path of the page that describes the interface; its OpenAPI document lies below
 * @param exposed names of the response headers that pages of other origins may read
 */
export function publicAccess(
  docs: string,
  exposed: readonly string[],
): Pick<Contract<'method_not_allowed'>, 'methodNotAllowed' | 'headers' | 'refusalHeaders' | 'preflight'> {
  const origin = { 'access-control-allow-origin': '*' }
  const description = `<${docs}/openapi.json>; rel="service-desc"; type="application/json"`
  return {
    methodNotAllowed: 'method_not_allowed',
    headers: {
      ...origin,
      'access-control-expose-headers': exposed.join(', '),
      link: `${description}, <${docs}>; rel="service-doc"; type="text/html"`,
    },
    refusalHeaders: NO_STORE,
    preflight: {
      ...origin,
      'access-control-allow-methods': 'GET, OPTIONS',
      'access-control-allow-headers': 'If-None-Match',
      ...NO_STORE,
    },
  }
}
