import { Refusal } from '../../../domain/refusal.ts'
import { utf8Text } from '../../../domain/text.ts'
import { verifyPublication } from '../../../domain/year/log/verify-proof.ts'
import type { BareContext } from '../../context.ts'
import { EXIT } from '../../exit-codes.ts'
import { escaped } from '../../terminal.ts'
import { readFile, readPolicy } from './policy-file.ts'

/**
 * Runs `dash verify`: verifies a publication against its proof file.
 *
 * @param files paths of the publication and of its proof file
 * @param policyFile path of the policy; without it, any signer is accepted and the result is not verified
 * @returns the exit code
 * @throws Refusal `usage` if a file is not named, cannot be read or is not a policy
 */
export async function verifyProofCommand(
  { terminal, cwd }: BareContext,
  files: readonly string[],
  policyFile: string | undefined,
): Promise<number> {
  const [publication, proof, ...more] = files
  if (publication === undefined || proof === undefined || more.length > 0)
    throw new Refusal('usage', 'name two files: the publication, then its proof file')
  const policy = policyFile === undefined ? null : readPolicy(policyFile, cwd).policy
  const bytes = readFile(publication, cwd)
  const verdict = verifyPublication(bytes, utf8Text(readFile(proof, cwd)), policy)
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
