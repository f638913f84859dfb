/** One page of a listing: keys as the bucket names them, and the token of the next page, if there is one. */
export interface S3Page {
  keys: string[]
  next: string | null
}

/**
 * Reads one page of ListObjectsV2. A page that is cut, is not one, or contradicts itself throws: an auditor that
 * missed keys would call an archive complete that is not.
 *
 * @param bytes the body of the answer
 * @throws Error naming what is wrong with the page
 */
export function parseListing(bytes: Uint8Array): S3Page {
  const xml = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  const [, inner] =
    /^\s*(?:<\?xml[^>]*\?>\s*)?<ListBucketResult(?:\s[^>]*)?>(.*)<\/ListBucketResult>\s*$/s.exec(xml) ?? [
      xml,
      null,
    ]
  if (inner === null || inner === undefined) throw broken('it is not a whole ListBucketResult')
  // Comments and CDATA could hide what looks like an element; no S3 server sends them.
  if (inner.includes('<!')) throw broken('it has a comment or CDATA')
  const contents = [...inner.matchAll(/<Contents>(.*?)<\/Contents>/gs)].map(([, content = '']) => content)
  const rest = inner.replaceAll(/<Contents>.*?<\/Contents>/gs, '')
  if (/<(?:Contents|Key)[\s>]/.test(rest)) throw broken('it has keys outside of its contents')
  const count = textOf(rest, 'KeyCount')
  if (count !== null && Number(count) !== contents.length)
    throw broken(`it counts ${count} keys and has ${contents.length}`)
  const encoded = textOf(rest, 'EncodingType') === 'url'
  return {
    keys: contents.map((content) => {
      const key = textOf(content, 'Key')
      if (key === null) throw broken('an entry has no key')
      return encoded ? decodeURIComponent(key.replaceAll('+', ' ')) : key
    }),
    next: nextOf(rest),
  }
}

/** The code of an S3 error document (`NoSuchKey`), or null when the body is none. */
export function errorCodeOf(bytes: Uint8Array): string | null {
  const xml = new TextDecoder().decode(bytes)
  return /^\s*(?:<\?xml[^>]*\?>\s*)?<Error(?:\s[^>]*)?>.*?<Code>(\w+)<\/Code>/s.exec(xml)?.[1] ?? null
}

function nextOf(rest: string): string | null {
  const token = textOf(rest, 'NextContinuationToken')
  const truncated = textOf(rest, 'IsTruncated')
  if (truncated === 'false') return null
  if (truncated !== 'true') throw broken('it does not say whether it is truncated')
  if (token === null || token === '') throw broken('it is truncated and has no token for the next page')
  return token
}

/** The text of an element that may stand at most once, or null when it is absent. */
function textOf(xml: string, name: string): string | null {
  const [first, second] = [...xml.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, 'g'))]
  if (second) throw broken(`it has more than one ${name}`)
  return first?.[1] === undefined ? null : unescapeXml(first[1])
}

const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

function unescapeXml(text: string): string {
  return text.replaceAll(/&([^;&]*);?/g, (reference, name: string) => {
    const [, decimal, hex] = /^#(?:(\d{1,7})|x([\da-fA-F]{1,6}))$/.exec(name) ?? []
    const code = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal)
    const character = Number.isNaN(code) || code > 0x10_ff_ff ? ENTITIES[name] : String.fromCodePoint(code)
    if (character === undefined || !reference.endsWith(';'))
      throw broken(`it has the unknown reference ${JSON.stringify(reference)}`)
    return character
  })
}

function broken(why: string): Error {
  return new Error(`the object store gave a listing that cannot be read: ${why}`)
}
