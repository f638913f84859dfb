import { statSync } from 'node:fs'

/**
 * Changes a file, again until the file system's own timestamp tells: two changes inside one tick of its clock look
 * like one. The product leaves two seconds for that; a test has no time to.
 */
export function changeFile(path: string, change: () => void): void {
  const stamp = (): bigint | undefined => statSync(path, { bigint: true, throwIfNoEntry: false })?.ctimeNs
  const before = stamp()
  do change()
  while (stamp() === before)
}
