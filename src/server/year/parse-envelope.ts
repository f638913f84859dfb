import { yearEnvelopeSchema } from '../../domain/year/schema.ts'
import type { YearEnvelope } from '../../domain/year/schema.ts'
import type { ProvedPublication } from './proved-publications.ts'

/** Makes what reads a proved publication as the envelope of version 3; null for an older layout. Each is parsed once. */
export function envelopeParser(): (publication: ProvedPublication) => YearEnvelope | null {
  const envelopes = new WeakMap<ProvedPublication, YearEnvelope | null>()
  return (publication) => {
    const known = envelopes.get(publication)
    if (known !== undefined) return known
    const parsed = yearEnvelopeSchema.safeParse(JSON.parse(publication.published.body.toString('utf8')))
    const envelope = parsed.success ? parsed.data : null
    envelopes.set(publication, envelope)
    return envelope
  }
}
