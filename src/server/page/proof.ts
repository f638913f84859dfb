import { formatInstant } from '../../domain/time.ts'
import type { ProvedLedger, TimelineItem } from '../../domain/year/chain.ts'
import type { Head } from '../../domain/year/ledger.ts'
import { counted } from './counts.ts'
import { copyable, shellText } from './copyable.ts'
import { html } from './html.ts'
import type { Html } from './html.ts'
import { instantOf } from './times.ts'

/**
 * What proves a publication, and the two commands by which anyone checks it (docs/auditing.md).
 *
 * @param baseUrl where this server is reached from outside
 * @param id apart from every other proof of the page
 */
export function proofPanel(
  { manifest, ledger, seq }: TimelineItem,
  proved: ProvedLedger & { head: Head | null },
  baseUrl: string,
  id = 'proof',
): Html {
  const at = formatInstant(manifest.publishedAt)
  const question = `${baseUrl}/api/feed/history?sort=year&at=${at}`
  return html`<aside class="proof" id="${id}" aria-labelledby="${id}-title">
    <h3 id="${id}-title">Proof</h3>
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
      <dd>${counted(manifest.byteSize, 'bytes')}</dd>
      <dt>Ledger</dt>
      <dd>${position(ledger, seq, proved)}</dd>
      <dt>Head</dt>
      <dd>
        ${proved.head ? html`entry ${proved.head.seq}, leaf <code>${proved.head.leaf}</code>` : 'none yet'}
      </dd>
    </dl>
    ${copyable({
      id: `${id}-digest`,
      caption: 'Prints the SHA-256 above',
      what: 'the command that prints the SHA-256',
      text: `curl -s ${shellText(question)} | sha256sum`,
    })}
    ${copyable({
      id: `${id}-audit`,
      caption: 'Audits all that this server publishes; run it in the folder of the program',
      what: 'the command that audits this server',
      text: `npx dash verify-archive --url ${shellText(baseUrl)}`,
    })}
    <p class="as-of">
      Keep the head: whoever has it can prove later that nothing before it was changed (<a
        href="/docs/auditing"
        >auditing</a
      >, <a href="/api/feed/history/ledger">ledger</a>, <a href="/api/feed/history/index">index</a>).
    </p>
  </aside>`
}

function position(ledger: TimelineItem['ledger'], seq: number, { entries }: ProvedLedger): Html {
  if (ledger === 'versioned')
    return html`entry ${seq} of ${entries.length}, leaf <code>${entries[seq - 1]?.leaf ?? ''}</code>`
  const seal = entries.find(({ kind }) => kind === 'legacy-seal')
  return html`row ${seq} of the legacy ledger, sealed by entry ${seal?.seq ?? 0}, leaf
    <code>${seal?.leaf ?? ''}</code>`
}
