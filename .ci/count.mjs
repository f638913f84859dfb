// Adds up vitest's JSON reports and prints the closing line; a report without tests, or with a failure, is a failure.
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'

let passed = 0
let failed = 0
for (const path of process.argv.slice(2)) {
  const report = JSON.parse(readFileSync(path, 'utf8'))
  passed += report.numPassedTests
  failed += report.numFailedTests
  if (report.numTotalTests === 0 || !report.success) failed ||= 1
  console.log(`${basename(path, '.json')}: ${report.numPassedTests} of ${report.numTotalTests} passed`)
}
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 && passed > 0 ? 0 : 1
