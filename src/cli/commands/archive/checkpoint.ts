import { Refusal } from '../../../domain/refusal.ts'
import { signLedger } from '../../../jobs/sign-checkpoint.ts'
import type { CommandContext } from '../../context.ts'
import { prepareFolders } from '../../data-folder.ts'
import { EXIT } from '../../exit-codes.ts'
import { isDeadProcess, thisProcess } from '../../process-identity.ts'

/**
 * Runs `dash checkpoint`: signs the checkpoint of the ledger.
 *
 * @returns the exit code
 * @throws Refusal `configuration` if no key is set; the refusals of {@link signLedger}
 */
export async function checkpointCommand({ config, container, terminal }: CommandContext): Promise<number> {
  const log = await container.signedLog()
  if (log === null)
    throw new Refusal(
      'configuration',
      'no log key is set; create one with dash log-key new and set DASH_LOG_KEY_FILE to its path',
    )
  prepareFolders(config, false)
  const report = await signLedger({
    ledger: await container.ledger(),
    year: await container.year(),
    objects: await container.objects(),
    log,
    clock: Date.now,
    holder: thisProcess(),
    isDead: isDeadProcess,
    onProgress: terminal.note,
  })
  const { signed, reason, origin, size, root } = report
  const entries = size === 1 ? '1 entry' : `${size} entries`
  const outcome = signed ? 'signed' : 'already signed'
  terminal.result(
    report,
    reason === null
      ? `${outcome}: ${origin}, ${entries}, root ${root.slice(0, 16)}`
      : `nothing was signed: ${reason}`,
  )
  return EXIT.done
}
