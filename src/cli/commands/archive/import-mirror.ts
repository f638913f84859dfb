import { importMirror } from '../../../jobs/archive/import-mirror.ts'
import type { CommandContext } from '../../context.ts'
import { prepareFolders } from '../../data-folder.ts'
import { EXIT } from '../../exit-codes.ts'
import { readTreeLocation } from '../../settings/read-config.ts'
import { copySummary, targetPorts } from './copy-archive.ts'
import { readPolicy } from '../verify/policy-file.ts'

/**
 * Runs `dash import mirror`: copies what the archive lost from a mirror or an export of it.
 *
 * @param source a folder, or the URL of a bucket
 * @param policyFile path of a policy; undefined to trust the stored policy, else the log key
 */
export async function importMirrorCommand(
  { config, container, terminal, signal, flags, env, cwd }: CommandContext,
  source: string,
  policyFile: string | undefined,
): Promise<number> {
  const location = readTreeLocation(source, 'the mirror', flags, env, cwd)
  const policy = policyFile === undefined ? null : readPolicy(policyFile, cwd).text
  const report = await importMirror(
    {
      mirror: await container.staticTree(location),
      ...(await targetPorts(container, terminal)),
      policy,
      keyPolicy: async () => (await container.signedLog())?.policy ?? null,
      prepare: () => prepareFolders(config, true),
    },
    signal,
  )
  terminal.result(report, copySummary(report))
  return EXIT.done
}
