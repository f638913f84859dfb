import { store, stored } from './dom.ts'

/**
 * Keeps the newest version of something that this browser saw, and the one before.
 *
 * @param key key of the storage
 * @param newest the shown version
 * @param isLater whether the first version is later than the second; an older page than the last one changes nothing
 * @returns `before`: the version of the last visit, null for a first visit; `isNew`: false if the newest was seen already
 */
export function lastSeen(
  key: string,
  newest: string,
  isValid: (value: unknown) => boolean,
  isLater: (one: string, other: string) => boolean = () => true,
): { before: string | null; isNew: boolean } {
  const seen = Object(stored(key))
  const textOf = (value: unknown) => (isValid(value) ? String(value) : null)
  const [last, earlier] = [textOf(seen.newest), textOf(seen.before)]
  if (last === null || last === newest) {
    const before = last === null ? null : earlier
    store(key, { newest, before })
    return { before, isNew: false }
  }
  if (!isLater(newest, last)) return { before: earlier, isNew: false }
  store(key, { newest, before: last })
  return { before: last, isNew: true }
}
