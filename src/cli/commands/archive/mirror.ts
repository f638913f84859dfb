import { availableParallelism } from 'node:os'
import type { StaticTree } from '../../../domain/ports.ts'
import { Refusal } from '../../../domain/refusal.ts'
import { mirrorHost } from '../../../jobs/archive/mirror.ts'
import type { MirrorReport } from '../../../jobs/archive/mirror.ts'
import type { CommandContext } from '../../context.ts'
import { createPublicFolder, requireOutsideStore } from '../../data-folder.ts'
import { describeError } from '../../exit-codes.ts'
import { hostFlag } from '../../settings/environment.ts'
import { readTreeLocation } from '../../settings/read-config.ts'
import { counted } from '../../terminal.ts'
import { exitCode, hostPorts } from '../verify/verify-archive.ts'
import type { HostLogFlags } from '../verify/verify-archive.ts'
import { forkText, showFindings, summarize } from '../verify/verify-output.ts'

/**
 * Runs `dash mirror`: copies the signed log of a host, its ledger and its publications to static files.
 *
 * @param names base URL of the host, then a folder or the URL of a bucket
 */
export async function mirrorCommand(
  context: CommandContext,
  flags: HostLogFlags,
  names: readonly string[],
): Promise<number> {
  const { config, container, terminal, signal } = context
  const [url, target, ...more] = names
  if (url === undefined || target === undefined || more.length > 0)
    throw new Refusal('usage', 'name the URL of a host, then a folder or a bucket for the mirror')
  const base = hostFlag('the host', url)
  const location = readTreeLocation(target, 'the target', context)
  requireOutsideStore(location, config)
  const host = await hostPorts(base, context, flags)
  const openTree = (): Promise<StaticTree> => {
    if (location.kind === 'file') createPublicFolder(location.path)
    return container.staticTree(location)
  }
  const result = await mirrorHost({ ...host, openTree }, { jobs: availableParallelism(), signal })
  showFindings(result, terminal)
  const reason = result.cause === null ? null : describeError(result.cause)
  terminal.result({ ...result.report, reason }, summary(result.report))
  return exitCode(result, signal)
}

function summary(report: MirrorReport): string {
  const { written, unchanged } = report
  return `${counted(written, 'file')} written, ${unchanged} unchanged; ${summarize(report, false)}${forkText(report)}`
}
