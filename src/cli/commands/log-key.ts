import { randomBytes } from 'node:crypto'
import { resolve } from 'node:path'
import { ED25519_KEY_BYTES } from '../../domain/digest.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { CommandContext } from '../context.ts'
import { EXIT } from '../exit-codes.ts'
import { requireOrigin } from '../settings/config.ts'

/**
 * `dash log-key new`
 *
 * @param file the key's file; by default the one that is set
 */
export async function newLogKeyCommand(
  { config, container, cwd, terminal }: CommandContext,
  file: string | undefined,
): Promise<number> {
  const origin = requireOrigin(config)
  const path = file === undefined ? config.log.keyFile : resolve(cwd, file)
  if (path === null) throw new Refusal('usage', 'name the file of the key, or set DASH_LOG_KEY_FILE')
  const verifierKey = await container.newLogKey(path, origin, randomBytes(ED25519_KEY_BYTES))
  terminal.result({ path, origin, verifierKey }, `made ${path}; readers verify with ${verifierKey}`)
  return EXIT.done
}
