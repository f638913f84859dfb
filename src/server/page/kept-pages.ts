import { coalesce } from '../coalesce.ts'
import type { RecordedReads } from './page-sources.ts'

/** Bytes and pages kept, all together. */
const MAX_BYTES = 32 * 1024 * 1024
const MAX_PAGES = 500

/** A page as it is sent. */
export interface RenderedPage {
  status: number
  headers: Readonly<Record<string, string>>
  body: Buffer
  gzip: Buffer
  /** Digest of the body; null for a page that is not kept and never a 304. */
  digest: string | null
}

/** Rendered pages by address, up to a number of bytes and of pages; the one used longest ago goes first. */
export interface KeptPages {
  /** The page of an address, if everything it was rendered from is unchanged; read again after this was called. */
  current(key: string): Promise<RenderedPage | null>
  /** Keeps a page in place of an earlier one of the same address. */
  keep(key: string, page: RenderedPage, reads: Pick<RecordedReads, 'isUnchanged'>): void
  forget(key: string): void
}

export function keptPages(maxBytes = MAX_BYTES, maxPages = MAX_PAGES): KeptPages {
  const kept = new Map<
    string,
    { page: RenderedPage; bytes: number; isUnchanged: RecordedReads['isUnchanged'] }
  >()
  let bytesKept = 0
  const forget = (key: string): void => {
    bytesKept -= kept.get(key)?.bytes ?? 0
    kept.delete(key)
  }
  return {
    forget,
    async current(key) {
      const found = kept.get(key)
      if (!found || !(await found.isUnchanged())) return null
      // Another may have taken its place meanwhile.
      if (kept.get(key) === found) {
        kept.delete(key)
        kept.set(key, found)
      }
      return found.page
    },
    keep(key, page, reads) {
      forget(key)
      const bytes = page.body.byteLength + page.gzip.byteLength
      kept.set(key, { page, bytes, isUnchanged: coalesce(() => reads.isUnchanged()) })
      bytesKept += bytes
      for (const oldest of kept.keys()) {
        if (bytesKept <= maxBytes && kept.size <= maxPages) break
        forget(oldest)
      }
    },
  }
}
