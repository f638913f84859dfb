import { store, stored } from './dom.ts'

/**
 * Keeps the newest version of something that this browser saw, and the one before.
 *
 * @param key key of the storage
 * @param newest the shown version
 * @returns `before`: the version of the last visit, null for a first visit; `isNew`: false if the newest was seen already
 */
export function lastSeen(
  key: string,
  newest: string,
  isValid: (value: unknown) => boolean,
): { before: string | null; isNew: boolean } {
  const seen = Object(stored(key))
  const [last, earlier] = [seen.newest, seen.before].map((value) => (isValid(value) ? String(value) : null))
  const isNew = last !== null && last !== newest
  const before = (isNew ? last : last === null ? null : earlier) ?? null
  store(key, { newest, before })
  return { before, isNew }
}
