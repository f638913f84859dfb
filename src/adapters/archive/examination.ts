import { examineBytes } from '../../domain/year/identity.ts'

/**
 * What examines stored bytes against a manifest. The schema of a whole payload is loaded only where one is asked for: it
 * takes longer than most audits have for their first step.
 */
export async function examinationOf(examination: 'identity' | 'whole'): Promise<typeof examineBytes> {
  if (examination === 'identity') return examineBytes
  const { examineWhole } = await import('../../domain/year/envelope.ts')
  return examineWhole
}
