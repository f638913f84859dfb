import { isDeepStrictEqual } from 'node:util'
import { Refusal } from '../../domain/refusal.ts'
import { copyArchive } from '../../jobs/copy-archive.ts'
import type { CopyReport } from '../../jobs/copy-archive.ts'
import type { Config } from '../config.ts'
import { prepareFolders, requireFolders } from '../data-folder.ts'
import { EXIT } from '../exit-codes.ts'
import { isDeadProcess, thisProcess } from '../process-identity.ts'
import type { CommandContext } from '../program.ts'
import { openArchivePlace } from '../wire.ts'

/** `dash copy-archive` */
export async function copyArchiveCommand(
  { config, terminal, signal }: CommandContext,
  targetConfig: Config,
): Promise<number> {
  if (
    isDeepStrictEqual(config.ledger, targetConfig.ledger) ||
    isDeepStrictEqual(config.store, targetConfig.store)
  ) {
    throw new Refusal('usage', '--to names the archive itself, or one half of it')
  }
  requireFolders(config)
  prepareFolders(targetConfig, true)
  const source = openArchivePlace(config)
  const target = openArchivePlace(targetConfig)
  try {
    const report = await copyArchive(
      {
        source,
        target,
        clock: Date.now,
        holder: thisProcess(),
        isDead: isDeadProcess,
        onNote: terminal.note,
        onProgress: ({ objects, ofObjects }) => terminal.progress(`${objects} of ${ofObjects} objects`),
      },
      signal,
    )
    terminal.result(report, summary(report))
    return EXIT.done
  } finally {
    await source.close()
    await target.close()
  }
}

function summary({ objects, entries, legacy, head }: CopyReport): string {
  const rows = entries.copied + legacy.copied
  const there = objects.unchanged > 0 ? `, ${objects.unchanged} objects were there already` : ''
  return `copied and audited: ${objects.copied} objects, ${rows} ledger rows${there}; head ${head.seq} ${head.leaf.slice(0, 16)}`
}
