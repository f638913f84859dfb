import { readdirSync, readlinkSync } from 'node:fs'

/** How often this process has a file open, where the system tells (Linux). */
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
