import { readFileSync } from 'node:fs'
import { utf8Text } from '../../../domain/text.ts'
import { resolve } from 'node:path'
import { Refusal, messageOf } from '../../../domain/refusal.ts'
import { parsePolicy } from '../../../domain/year/log/log-policy.ts'
import type { LogPolicy } from '../../../domain/year/log/log-policy.ts'

/**
 * Reads a file that a command line names.
 *
 * @throws Refusal `usage` if it cannot be read
 */
export function readFile(file: string, cwd: string): Buffer {
  try {
    return readFileSync(resolve(cwd, file))
  } catch (error) {
    throw new Refusal('usage', `${JSON.stringify(file)} cannot be read (${messageOf(error)})`)
  }
}

/**
 * Reads the policy file of `--policy`.
 *
 * @throws Refusal `usage` if it cannot be read or is not a policy
 */
export function readPolicy(file: string, cwd: string): { text: string; policy: LogPolicy } {
  const text = utf8Text(readFile(file, cwd))
  const parsed = parsePolicy(text)
  if (parsed.problem !== null)
    throw new Refusal('usage', `--policy ${JSON.stringify(file)} is not a valid policy: ${parsed.problem}`)
  return { text, policy: parsed.policy }
}
