import { fileURLToPath } from 'node:url'

/** Folder of a store's numbered migrations; at the same depth from the sources as from the build. */
export function migrationsOf(store: 'ledger' | 'feed'): string {
  return fileURLToPath(new URL(`../../../migrations/${store}`, import.meta.url))
}
