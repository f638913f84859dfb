/** Vitest's own reporters: for a person, and as JSON into `reportFile` when one is named. */
export function reporting(reportFile: string | undefined): {
  reporters: string[]
  outputFile?: { json: string }
} {
  if (!reportFile) return { reporters: ['default'] }
  return { reporters: ['default', 'json'], outputFile: { json: reportFile } }
}
