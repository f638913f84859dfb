import { resolve } from 'node:path'
import { readNamedFile } from '../../settings/named-file.ts'
import { Refusal, messageOf } from '../../../domain/refusal.ts'
import { utf8Text } from '../../../domain/text.ts'
import { parsePolicy } from '../../../domain/year/log/signed-note.ts'
import type { VerifierKey } from '../../../domain/year/log/signed-note.ts'
import { verifyPublication } from '../../../domain/year/log/log-proof.ts'
import type { BareContext } from '../../context.ts'
import { EXIT } from '../../exit-codes.ts'
import { escaped } from '../../terminal.ts'

/**
 * Runs `dash verify`: verifies a publication against its proof file. Without a policy, any signer is accepted and the
 * result is not verified.
 *
 * @param files paths of the publication and of its proof file
 * @throws Refusal `usage` if a file is not named, cannot be read or is not a policy
 */
export async function verifyProofCommand(
  { terminal, cwd }: BareContext,
  { policy: policyFile }: { policy?: string },
  files: readonly string[],
): Promise<number> {
  const [publication, proof, ...more] = files
  if (publication === undefined || proof === undefined || more.length > 0)
    throw new Refusal('usage', 'name two files: the publication, then its proof file')
  const keys = policyFile === undefined ? null : readPolicy(policyFile, cwd).keys
  const bytes = readFile(publication, cwd)
  const verdict = verifyPublication(bytes, utf8Text(readFile(proof, cwd)), keys)
  const { ok, problem, entry } = verdict
  const sentences = [
    ...verdict.proved.map(({ text }) => `proved: ${text}`),
    ...verdict.notProved.map(({ text }) => `not proved: ${text}`),
  ]
  const outcome = problem === null ? (ok ? 'verified' : 'NOT VERIFIED') : `WRONG: ${problem}`
  const proved = verdict.proved.map(({ code }) => code)
  const notProved = verdict.notProved.map(({ code }) => code)
  terminal.result(
    { ok, proved, notProved, entry, problem, sentences },
    [outcome, ...sentences.map((sentence) => `  ${sentence}`)].map(escaped).join('\n'),
  )
  return ok ? EXIT.done : EXIT.damaged
}

/**
 * Reads a file that a command line names.
 *
 * @param flag flag that names it, for messages; none for an argument
 * @throws Refusal `usage` if it cannot be read
 */
export function readFile(file: string, cwd: string, flag = ''): Buffer {
  try {
    return readNamedFile(resolve(cwd, file))
  } catch (error) {
    throw new Refusal(
      'usage',
      `${flag} ${JSON.stringify(file)} cannot be read (${messageOf(error)})`.trimStart(),
    )
  }
}

/**
 * Reads the policy file of `--policy`.
 *
 * @throws Refusal `usage` if it cannot be read or is not a policy
 */
export function readPolicy(file: string, cwd: string): { text: string; keys: VerifierKey[] } {
  const text = utf8Text(readFile(file, cwd))
  const parsed = parsePolicy(text)
  if (parsed.problem !== null)
    throw new Refusal('usage', `--policy ${JSON.stringify(file)} is not a valid policy: ${parsed.problem}`)
  return { text, keys: parsed.keys }
}
