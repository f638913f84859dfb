import { encodeBase64 } from '../../../domain/digest.ts'
import type { ExportedArchive } from '../../../domain/year/log/static-layout.ts'
import { Refusal } from '../../../domain/refusal.ts'
import { formatInstant } from '../../../domain/time.ts'
import type { Instant } from '../../../domain/time.ts'
import type { ProvedLedger, TimelineItem } from '../../../domain/year/chain.ts'
import type { Head } from '../../../domain/year/ledger.ts'
import { LOG_PATH } from '../../../domain/year/log/log-history.ts'
import { sealOf } from '../../../domain/year/ledger.ts'
import {
  STATIC_CHECKPOINT,
  STATIC_INDEX,
  STATIC_POLICY,
  staticObjectPath,
} from '../../../domain/year/log/static-layout.ts'
import { mementoPath } from '../../../domain/year/history/history.ts'
import { codeOf } from '../../route.ts'
import { checkpointContract } from '../../year/log-routes.ts'
import type { ServedLog } from '../../year/log-routes.ts'
import { NOTHING, copyable, formatCounted, formatMinute, html, instantOf, shellText } from '../html.ts'
import type { Html } from '../html.ts'

/** The log as the page shows it: null without a signed checkpoint; a refusal if it cannot be served. */
export type ShownLog = Pick<ServedLog, 'checkpoint'> | { refused: string } | null

/** Reads the log for the page. A log that cannot be served does not hide the publications, which the chain proves. */
export async function shownLog(readLog: () => Promise<ServedLog | null>): Promise<ShownLog> {
  try {
    return await readLog()
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return { refused: codeOf(checkpointContract, error) }
  }
}

export interface Evidence {
  proved: ProvedLedger & { head: Head | null }
  log: ShownLog
  /** Public URL of the server. */
  baseUrl: string
}

/**
 * Renders the proof of a publication as a seal that opens: the commands that check it, the facts, and the files
 * (docs/auditing.md).
 */
export function proofPanel(item: TimelineItem, evidence: Evidence, id = 'proof'): Html {
  const { proved, log, baseUrl } = evidence
  const { publishedAt } = item.manifest
  return renderSeal(item, evidence, id, {
    digest: {
      caption: 'Prints the SHA-256 below',
      text: `curl -fsS ${shellText(`${baseUrl}${mementoPath(publishedAt)}`)} | sha256sum`,
    },
    audit: {
      caption: 'Audits every publication of this server; run it in the folder of the program',
      text: `npx dash verify-archive --url ${shellText(baseUrl)}`,
    },
    files: html`${logFiles(item, proved, log)}
      <p class="as-of">
        Save the head: it proves later that nothing before it was changed (<a href="/docs/auditing"
          >auditing</a
        >, <a href="/api/feed/history/ledger">ledger</a>, <a href="/api/feed/history/index">index</a>).
      </p>`,
  })
}

/**
 * Renders the proof of a publication on a page of an export, which does not know its own address.
 *
 * @param root relative URL of the root of the export, empty or ending with a slash
 */
export function exportedProofPanel(
  item: TimelineItem,
  { proved, checkpoint }: Pick<ExportedArchive, 'proved' | 'checkpoint'>,
  root: string,
): Html {
  const { publicationId, sha256 } = item.manifest
  const name = `${publicationId}.json`
  return renderSeal(item, { proved, log: { checkpoint } }, 'proof', {
    digest: {
      caption: html`<span
        >Prints the SHA-256 below, of
        <a href="${root}${staticObjectPath(sha256)}" download="${name}">the publication</a> that you
        saved</span
      >`,
      text: `sha256sum ${shellText(name)}`,
    },
    audit: {
      caption:
        'Audits every publication here; run it in the folder of dash, with the address of these pages in place of https://…',
      text: `npx dash verify-archive --url https://…`,
    },
    files: html`<p class="proof-files">
      <a href="${root}${STATIC_CHECKPOINT}">Checkpoint</a>
      <a href="${root}${STATIC_POLICY}">Policy</a>
      <a href="${root}${STATIC_INDEX}">Index</a>
    </p>`,
  })
}

type ProofCommand = Pick<Parameters<typeof copyable>[0], 'caption' | 'text'>

/** What differs between the proof at a server and in an export. */
interface ProofMeans {
  /** Prints the SHA-256 of the publication. */
  digest: ProofCommand
  /** Audits the whole archive. */
  audit: ProofCommand
  files: Html
}

function renderSeal(
  item: TimelineItem,
  { proved, log }: Pick<Evidence, 'proved' | 'log'>,
  id: string,
  { digest, audit, files }: ProofMeans,
): Html {
  const { manifest } = item
  return html`<div class="seal">
    <details class="proof" id="${id}">
      <summary>
        Sealed<span class="roomy"> ${sealedTime(manifest.publishedAt)}</span
        ><span class="unseen">, open the proof</span>
      </summary>
      <p>Unchanged since then: check it yourself</p>
      ${copyable({ id: `${id}-digest`, copiedThing: 'the command that prints the SHA-256', ...digest })}
      ${copyable({ id: `${id}-audit`, copiedThing: 'the command that audits the archive', ...audit })}
      <dl>
        <dt>Publication</dt>
        <dd><code>${manifest.publicationId}</code></dd>
        <dt>As of</dt>
        <dd>${manifest.asOfDay}</dd>
        <dt>Published</dt>
        <dd>${instantOf(manifest.publishedAt)}</dd>
        <dt>SHA-256</dt>
        <dd><code>${manifest.sha256}</code></dd>
        <dt>Size</dt>
        <dd>${formatCounted(manifest.byteSize, 'bytes')}</dd>
        <dt>Ledger</dt>
        <dd>${position(item, proved)}</dd>
        <dt>Head</dt>
        <dd>
          ${proved.head ? html`entry ${proved.head.seq}, leaf <code>${proved.head.leaf}</code>` : 'none yet'}
        </dd>
        ${log !== null && 'checkpoint' in log ? checkpointFacts(log.checkpoint) : NOTHING}
      </dl>
      ${files}
    </details>
  </div>`
}

const SEALED_TIME = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
  timeZone: 'UTC',
})

/** A time as the summary shows it, `26 Nov 00:10 UTC`. */
function sealedTime(at: Instant): Html {
  const text = `${SEALED_TIME.format(at).replace(',', '')} UTC`
  return html`<time datetime="${formatInstant(at)}" title="${formatMinute(at)}">${text}</time>`
}

function position({ ledger, seq }: TimelineItem, proved: ProvedLedger): Html {
  const { entries } = proved
  if (ledger === 'versioned')
    return html`entry ${seq} of ${entries.length}, leaf <code>${entries[seq - 1]?.leaf ?? ''}</code>`
  const seal = sealOf(proved.entries)
  return html`row ${seq} of the legacy ledger, sealed by entry ${seal?.seq ?? 0}, leaf
    <code>${seal?.leaf ?? ''}</code>`
}

function checkpointFacts({ origin, size, root }: ServedLog['checkpoint']): Html {
  return html`<dt>Signed log</dt>
    <dd><code>${origin}</code></dd>
    <dt>Checkpoint</dt>
    <dd>${formatCounted(size, 'entries')}, root <code>${encodeBase64(root)}</code></dd>`
}

/** Renders the files that prove a publication offline. */
function logFiles({ manifest, ledger, seq }: TimelineItem, proved: ProvedLedger, log: ShownLog): Html {
  if (log === null)
    return html`<p class="as-of">
      This server signs no checkpoints: the chain and a saved head are the proof.
    </p>`
  if ('refused' in log)
    return html`<p class="refusal">The signed log cannot be shown: <code>${log.refused}</code>.</p>`
  const entry = ledger === 'versioned' ? seq : (sealOf(proved.entries)?.seq ?? Infinity)
  if (entry > log.checkpoint.size)
    return html`<p class="as-of">No signed checkpoint contains this publication yet.</p>`
  const object = `/${staticObjectPath(manifest.sha256)}`
  const proof = `${LOG_PATH}/proof?at=${formatInstant(manifest.publishedAt)}`
  const name = `${manifest.publicationId}.json`
  return html`<p class="proof-files">
      <a href="${object}" download="${name}">Publication</a>
      <a href="${proof}" download="${name}.tlog-proof">Proof file</a>
      <a href="${LOG_PATH}/policy" download="policy.txt">Policy</a>
    </p>
    <p class="as-of">
      ${
        ledger === 'versioned'
          ? html`The files prove this publication offline, without this server`
          : html`The proof of a legacy publication is a JSON document with the legacy ledger and the proof of
            its seal; it works offline too`
      }
      (<a href="/docs/proof#verifying-a-publication">how to verify</a>).
    </p>`
}
