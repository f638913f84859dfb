import { randomBytes } from 'node:crypto'
import { resolve } from 'node:path'
import { ED25519_KEY_BYTES } from '../../../domain/digest.ts'
import { Refusal } from '../../../domain/refusal.ts'
import { signLedger } from '../../../jobs/sign-checkpoint.ts'
import type { CommandContext } from '../../context.ts'
import { prepareFolders } from '../../data-folder.ts'
import { EXIT } from '../../exit-codes.ts'
import { requireOrigin } from '../../settings/config.ts'
import { counted } from '../../terminal.ts'
import { THIS_RUN } from '../../process-identity.ts'

/**
 * Runs `dash checkpoint`: signs the checkpoint of the ledger.
 *
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
    ...THIS_RUN,
    onProgress: terminal.note,
  })
  const { signed, reason, origin, size, root } = report
  const entries = counted(size, 'entry', 'entries')
  const outcome = signed ? 'signed' : 'already signed'
  const text = `${outcome}: ${origin}, ${entries}, root ${root.slice(0, 16)}`
  terminal.result(report, reason === null ? text : `nothing was signed: ${reason}`)
  return EXIT.done
}

/**
 * Runs `dash log-key new`: creates a key file.
 *
 * @param file path of the key file; undefined uses `DASH_LOG_KEY_FILE`
 * @throws Refusal `usage` if there is no path or the file exists, `configuration` if the log has no name
 */
export async function newLogKeyCommand(
  { config, container, cwd, terminal }: CommandContext,
  { replaces }: { replaces?: string },
  [file]: readonly string[],
): Promise<number> {
  const origin = requireOrigin(config)
  const path = file === undefined ? config.log.keyFile : resolve(cwd, file)
  if (path === null) throw new Refusal('usage', 'no key file given; name one or set DASH_LOG_KEY_FILE')
  const replaced = replaces === undefined ? null : resolve(cwd, replaces)
  const vkey = await container.newLogKey(path, origin, randomBytes(ED25519_KEY_BYTES), replaced)
  terminal.result({ vkey, path, origin }, `created ${path}; its verifier key is ${vkey}`)
  return EXIT.done
}
