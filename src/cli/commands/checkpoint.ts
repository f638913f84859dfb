import { Refusal } from '../../domain/refusal.ts'
import { signLedger } from '../../jobs/sign-checkpoint.ts'
import type { CommandContext } from '../context.ts'
import { prepareFolders } from '../data-folder.ts'
import { EXIT } from '../exit-codes.ts'
import { isDeadProcess, thisProcess } from '../process-identity.ts'

/**
 * `dash checkpoint`
 *
 * @throws Refusal `configuration` when no key is set; as {@link signLedger}
 */
export async function checkpointCommand({ config, container, terminal }: CommandContext): Promise<number> {
  const log = await container.signedLog()
  if (log === null)
    throw new Refusal(
      'configuration',
      'there is no key to sign with: dash log-key new makes one, DASH_LOG_KEY_FILE names it',
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
  const { origin, size, root } = report
  const signed = `signed: ${origin}, ${size === 1 ? '1 entry' : `${size} entries`}, root ${root.slice(0, 16)}`
  terminal.result(report, size === 0 ? 'the ledger has no entry yet; nothing was signed' : signed)
  return EXIT.done
}
