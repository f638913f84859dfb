/** Vitest's reporters: the default one, and JSON into `reportFile` if given. */
export function reporting(reportFile: string | undefined): {
  reporters: string[]
  outputFile?: { json: string }
} {
  if (!reportFile) return { reporters: ['default'] }
  return { reporters: ['default', 'json'], outputFile: { json: reportFile } }
}
