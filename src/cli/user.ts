import { homedir, userInfo } from 'node:os'

/** The user this process runs as; `name` is the number where the system knows no name, as in many containers. */
export function currentUser(): { uid: number; name: string } {
  try {
    const { uid, username } = userInfo()
    return { uid, name: username }
  } catch (error) {
    const uid = process.getuid?.()
    if (uid === undefined) throw error
    return { uid, name: String(uid) }
  }
}

/** What chown takes for a user and the group of their login; a number that has no name has no such group. */
export function ownerWord(user: string): string {
  return /^\d+$/.test(user) ? user : `${user}:`
}

/** The folder of the user, which `~` stands for; that of the machine where the system knows none. */
export function homeFolder(): string {
  try {
    return homedir()
  } catch {
    return '/'
  }
}
