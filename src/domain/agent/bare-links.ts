/**
 * What a reader of Markdown makes a link of by itself, without any mark: addresses of mail, with or without `mailto:` and
 * `xmpp:`, and `ftp://` (docs/decisions/0031-untrusted-text.md). Each is broken by one space; web addresses stay whole.
 */

/** What is given out for the next `length` code units; `undecided`: more must be known. */
export type Change = { text: string; length: number } | 'undecided'

/** How much of what was given out decides on what follows. */
export const LOOK_BACK_LENGTH = 2_000

/** Longest name of a host that is waited for. */
const HOST_MAX_LENGTH = 255

/** The end of a text lies behind the host of a web address that every reader makes a link of, or of the target of a link. */
const IN_WEB_ADDRESS =
  /[\s(<]https?:\/\/(?:[a-z0-9-]+\.)+[a-z0-9-]*[a-z0-9](?::\d+)?[/?#][\w\-.~:/?#@!$&+,;=%]*$/i

/**
 * Before the sign of an address of mail, between angle brackets (CommonMark) or bare (GFM); an entity or an escape may stand
 * for one of its characters.
 */
const LOCAL_PART_END = /[\w.!#$%&'*+\-/=?^`{|}~;\\]$/

/**
 * @param given what was given out before, at least its last {@link LOOK_BACK_LENGTH} code units
 * @param at place of an `@` in `text`
 */
export function mailSign(given: string, text: string, at: number, isEnd: boolean): Change {
  const same = { text: '@', length: 1 }
  if (!LOCAL_PART_END.test(given) || IN_WEB_ADDRESS.test(given)) return same
  const broken = { text: ' @', length: 1 }
  const rest = text.slice(at + 1, at + 1 + HOST_MAX_LENGTH)
  const [name = ''] = /^[\w-]*/.exec(rest) ?? []
  const [stop, next] = [rest[name.length], rest[name.length + 1]]
  if (rest.length === HOST_MAX_LENGTH && stop === undefined) return broken
  if (stop === undefined || (stop === '.' && next === undefined)) return isEnd ? same : 'undecided'
  const goesOn = stop === '.' ? /[\w\-\\&]/.test(next ?? '') : stop === '\\' || stop === '&'
  return goesOn ? broken : same
}

/** Longest name of an entity for `@`, leading zeros included. */
const ENTITY_MAX_LENGTH = 8

/** @param at place of an `&` in `text`, which begins an entity that stands for `@` or does not */
export function mailSignEntity(text: string, at: number, isEnd: boolean): Change {
  const same = { text: '&', length: 1 }
  const rest = text.slice(at + 1, at + 2 + ENTITY_MAX_LENGTH)
  const [name = ''] = /^#?[a-z0-9]*/i.exec(rest) ?? []
  const couldBe = 'commat'.startsWith(name) || /^#(?:\d*|x[\da-f]*)$/i.test(name)
  if (!couldBe) return same
  if (name.length === rest.length) return isEnd || name.length > ENTITY_MAX_LENGTH ? same : 'undecided'
  const is = name === 'commat' || /^#(?:0*64|x0*40)$/i.test(name)
  return is && rest[name.length] === ';' ? { text: '& ', length: 1 } : same
}

/** @param at place of a `:` in `text` */
export function schemeEnd(given: string, text: string, at: number, isEnd: boolean): Change {
  const same = { text: ':', length: 1 }
  if (!/ftp$/i.test(given) || IN_WEB_ADDRESS.test(given)) return same
  const next = text.slice(at + 1, at + 3)
  if (next === '//') return { text: ' :', length: 1 }
  return '//'.startsWith(next) && !isEnd ? 'undecided' : same
}
