import { yearEnvelopeSchema } from '../../domain/year/schema.ts'
import type { YearEnvelope } from '../../domain/year/schema.ts'
import type { ProvedPublication } from './proved-publications.ts'

/** Parsed envelopes kept in memory: each is several times as large as its bytes. */
const KEPT = 4

/** Makes what reads a proved publication as the envelope of version 3; null for an older layout. The last few are kept. */
export function envelopeParser(): (publication: ProvedPublication) => YearEnvelope | null {
  const envelopes = new Map<ProvedPublication, YearEnvelope | null>()
  return (publication) => {
    const known = envelopes.get(publication)
    if (known !== undefined) return known
    const parsed = yearEnvelopeSchema.safeParse(JSON.parse(publication.published.body.toString('utf8')))
    const envelope = parsed.success ? parsed.data : null
    envelopes.set(publication, envelope)
    for (const oldest of envelopes.keys()) {
      if (envelopes.size <= KEPT) break
      envelopes.delete(oldest)
    }
    return envelope
  }
}
