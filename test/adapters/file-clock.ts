import { lstatSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { vi } from 'vitest'
import type { Clock } from '../../src/domain/ports.ts'

/** A clock by which everything a test has just written is long settled. */
export const laterClock: Clock = () => Date.now() + 10_000

/**
 * Resolves once the file system would stamp a later time than the last one it stamped on `path`. Its clock ticks every
 * few milliseconds; two changes within a tick are what the two settling seconds of a witness are for.
 */
export async function fileSystemClockMovedOn(path: string): Promise<void> {
  const { ctimeNs } = lstatSync(path, { bigint: true })
  const folder = mkdtempSync(join(tmpdir(), 'dash-tick-'))
  const probe = join(folder, 'probe')
  try {
    await vi.waitUntil(
      () => {
        writeFileSync(probe, '')
        return lstatSync(probe, { bigint: true }).ctimeNs > ctimeNs
      },
      { interval: 1, timeout: 5_000 },
    )
  } finally {
    rmSync(folder, { recursive: true })
  }
}
