import { Refusal } from '../../../domain/refusal.ts'
import { encodeBase64 } from '../../../domain/digest.ts'
import { formatInstant } from '../../../domain/time.ts'
import type { ProvedLedger, TimelineItem } from '../../../domain/year/chain.ts'
import type { Head } from '../../../domain/year/ledger.ts'
import { LOG_PATH } from '../../../domain/year/log/log-history.ts'
import { sealOf } from '../../../domain/year/ledger.ts'
import { staticObjectPath } from '../../../domain/year/log/static-layout.ts'
import { mementoPath } from '../../../domain/year/history/memento.ts'
import { codeOf } from '../../route.ts'
import { checkpointContract } from '../../year/log-routes.ts'
import type { ServedLog } from '../../year/served-log.ts'
import { NOTHING, copyable, formatCounted, html, instantOf, shellText } from '../html.ts'
import type { Html } from '../html.ts'

/** The log as the page shows it: null without a signed checkpoint; a refusal if it cannot be served. */
export type ShownLog = Pick<ServedLog, 'checkpoint'> | { refused: string } | null

/**
 * Reads the log for the page. A log that cannot be served does not hide the publications, which the chain proves.
 *
 * @throws faults
 */
export async function shownLog(readLog: () => Promise<ServedLog | null>): Promise<ShownLog> {
  try {
    return await readLog()
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return { refused: codeOf(checkpointContract, error) }
  }
}

/** Evidence for every publication of a server. */
export interface Evidence {
  proved: ProvedLedger & { head: Head | null }
  log: ShownLog
  /** Public URL of the server. */
  baseUrl: string
}

/**
 * Renders the proof of a publication as a seal that opens: facts, files, and the commands that check it
 * (docs/auditing.md). The server verified the publication for this request.
 *
 * @param id id of the element, unique on the page
 */
export function proofPanel(item: TimelineItem, { proved, log, baseUrl }: Evidence, id = 'proof'): Html {
  const { manifest } = item
  return html`<div class="seal">
    <details class="proof" id="${id}">
      <summary>
        <span class="good"><span aria-hidden="true">✓ </span>Verified</span
        ><span class="roomy"> · ${manifest.sha256.slice(0, 8)}…</span
        ><span class="unseen">, open the proof</span>
      </summary>
      <dl>
        <dt>Publication</dt>
        <dd><code>${manifest.publicationId}</code></dd>
        <dt>As of</dt>
        <dd>${manifest.asOfDay}</dd>
        <dt>Published</dt>
        <dd>${instantOf(manifest.publishedAt)}</dd>
        <dt>SHA-256</dt>
        <dd><code id="${id}-sha256">${manifest.sha256}</code></dd>
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
      ${logFiles(item, proved, log)}
      ${copyable({
        id: `${id}-digest`,
        caption: 'Prints the SHA-256 above',
        copiedThing: 'the command that prints the SHA-256',
        text: `curl -s ${shellText(`${baseUrl}${mementoPath(manifest.publishedAt)}`)} | sha256sum`,
      })}
      ${copyable({
        id: `${id}-audit`,
        caption: 'Audits every publication of this server; run it in the folder of the program',
        copiedThing: 'the command that audits this server',
        text: `npx dash verify-archive --url ${shellText(baseUrl)}`,
      })}
      <p class="as-of">
        Save the head: it proves later that nothing before it was changed (<a href="/docs/auditing"
          >auditing</a
        >, <a href="/api/feed/history/ledger">ledger</a>, <a href="/api/feed/history/index">index</a>).
      </p>
    </details>
    <button type="button" class="needs-script" data-copy="${id}-sha256">
      Copy<span class="unseen"> the SHA-256</span>
    </button>
  </div>`
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
