import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import fs, {
  statSync,
  readdirSync,
  readFileSync,
  lstatSync,
  mkdtempSync,
  rmSync,
  writeFileSync,
  readlinkSync,
  realpathSync,
} from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { onTestFinished, vi } from 'vitest'
import type { MockInstance } from 'vitest'
import type { Clock } from '../../src/domain/ports.ts'

/** An empty folder of the running test's own, removed when it ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'dash-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Spies on a function of `node:fs`, as every module calls it, until the test ends. */
export function spyOnFiles<Name extends 'readSync' | 'copyFileSync'>(
  name: Name,
): MockInstance<(typeof fs)[Name]> {
  const spy = vi.spyOn(fs, name)
  syncBuiltinESMExports()
  onTestFinished(() => {
    spy.mockRestore()
    syncBuiltinESMExports()
  })
  return spy
}

/**
 * Everything below a folder: names, kinds, bytes and times; for a test that nothing of it was touched.
 *
 * @param isLeftOut selects files that are not opened: closing a file releases every lock that its process holds on it,
 * and an open database would lose its lock
 */
export function stateOfFolder(
  folder: string,
  isLeftOut: (name: string) => boolean = () => false,
): Record<string, string> {
  const state: Record<string, string> = {}
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (isLeftOut(entry.name)) continue
    const path = join(entry.parentPath, entry.name)
    const { ino, mode, mtimeNs, ctimeNs } = statSync(path, { bigint: true })
    const bytes = entry.isFile() ? readFileSync(path).toString('base64') : ''
    state[relative(folder, path)] = [ino, mode, mtimeNs, ctimeNs, bytes].join(' ')
  }
  return state
}

/** Every file below a folder with its bytes. */
export function filesOfFolder(folder: string): Record<string, string> {
  const files: Record<string, string> = {}
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isFile()) files[relative(folder, path)] = readFileSync(path).toString('base64')
  }
  return files
}

/** A clock by which everything a test has just written is long settled. */
export const laterClock: Clock = () => Date.now() + 10_000

/**
 * Resolves once the file system would stamp a later time than the last one it stamped on `path`. Its clock ticks every
 * few milliseconds; two changes within a tick are what the two settling seconds of a change token are for.
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

/** Number of open descriptors of a file in this process (Linux only). */
export function openDescriptors(path: string): number {
  return readdirSync('/proc/self/fd').filter((descriptor) => targetOf(descriptor) === path).length
}

function targetOf(descriptor: string): string | null {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`)
  } catch {
    // Closed since the listing: the listing's own descriptor is.
    return null
  }
}
