/** Returns a function that makes a value at its first call and caches it. */
export function once<T>(make: () => T): () => T {
  let cache: { value: T } | null = null
  return () => (cache ??= { value: make() }).value
}

/** Returns a function that makes a value of each object once and caches it as long as the object lives. */
export function onceFor<Key extends object, T>(make: (key: Key) => T): (key: Key) => T {
  const cache = new WeakMap<Key, { value: T }>()
  return (key) => {
    const cached = cache.get(key) ?? { value: make(key) }
    cache.set(key, cached)
    return cached.value
  }
}
