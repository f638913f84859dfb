import { accessSync, constants, rmSync, statfsSync, writeFileSync } from 'node:fs'

const MEMORY = '/dev/shm'
const ROOM_BYTES = 2 ** 31

/** Puts temporary files in memory where possible, since most of the time of the tests is waiting for a disk. */
export function setup(): void {
  if (process.env['TMPDIR'] === undefined && hasRoom() && startsPrograms()) process.env['TMPDIR'] = MEMORY
}

function hasRoom(): boolean {
  try {
    const { bavail, bsize } = statfsSync(MEMORY)
    return bavail * bsize >= ROOM_BYTES
  } catch {
    return false
  }
}

/** False if the folder cannot be written, or is mounted `noexec`: tests place programs in their folders. */
function startsPrograms(): boolean {
  const probe = `${MEMORY}/dash-probe-${process.pid}`
  try {
    writeFileSync(probe, '', { mode: 0o700 })
    accessSync(probe, constants.X_OK)
    return true
  } catch {
    return false
  } finally {
    rmSync(probe, { force: true })
  }
}
