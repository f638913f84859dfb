import { randomBytes } from 'node:crypto'
import { resolve } from 'node:path'
import { ED25519_KEY_BYTES } from '../../../domain/digest.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { CommandContext } from '../../context.ts'
import { EXIT } from '../../exit-codes.ts'
import { requireOrigin } from '../../settings/config.ts'

/**
 * Runs `dash log-key new`: creates a key file.
 *
 * @param file path of the key file; undefined uses `DASH_LOG_KEY_FILE`
 * @param replaces path of the key file whose keys sign beside the new one
 * @returns the exit code
 * @throws Refusal `usage` if there is no path or the file exists, `configuration` if the log has no name
 */
export async function newLogKeyCommand(
  { config, container, cwd, terminal }: CommandContext,
  file: string | undefined,
  replaces: string | undefined,
): Promise<number> {
  const origin = requireOrigin(config)
  const path = file === undefined ? config.log.keyFile : resolve(cwd, file)
  if (path === null) throw new Refusal('usage', 'no key file given; name one or set DASH_LOG_KEY_FILE')
  const replaced = replaces === undefined ? null : resolve(cwd, replaces)
  const vkey = await container.newLogKey(path, origin, randomBytes(ED25519_KEY_BYTES), replaced)
  terminal.result({ vkey, path, origin }, `created ${path}; its verifier key is ${vkey}`)
  return EXIT.done
}
