import { fileURLToPath } from 'node:url'

/** What is kept in a database of its own, or beside the others on one server. */
export type StoreName = 'ledger' | 'feed' | 'state'

/** Folder of a store's numbered migrations; at the same depth from the sources as from the build. */
export function migrationsOf(store: StoreName): string {
  return fileURLToPath(new URL(`../../../migrations/${store}`, import.meta.url))
}
