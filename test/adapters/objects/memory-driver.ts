import { defineDriver } from 'unstorage'
import type { Driver, TransactionOptions } from 'unstorage'
import { storageDamaged } from '../../../src/domain/refusal.ts'

/** The in-memory twin of the engines: objects by path (`heads/1`), which are never overwritten but on demand. */
export function memoryObjects(objects: Map<string, Uint8Array>): Driver {
  const pathOf = (key: string): string => key.replaceAll(':', '/')
  return defineDriver(() => ({
    name: 'memory-objects',
    getItem: () => Promise.reject(new Error('objects are bytes: use getItemRaw')),
    hasItem: (key: string) => objects.has(pathOf(key)),
    getItemRaw: (key: string) => {
      const bytes = objects.get(pathOf(key))
      return bytes === undefined ? null : Uint8Array.from(bytes)
    },
    setItemRaw: (key: string, value: Uint8Array, options: TransactionOptions) => {
      if (options['replace'] === true) objects.delete(pathOf(key))
      const stored = objects.get(pathOf(key)) ?? Uint8Array.from(value)
      objects.set(pathOf(key), stored)
      if (Buffer.compare(stored, value) !== 0) throw storageDamaged(`${pathOf(key)} holds other bytes`)
    },
    getKeys: (base: string) => [...objects.keys()].filter((path) => path.startsWith(`${pathOf(base)}/`)),
    getMeta: () => ({ witness: null }),
  }))(undefined)
}
