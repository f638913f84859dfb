// Adds up vitest's JSON reports, names every failed test with its first line of reason, and prints the closing line.
// A report without tests, or with a failure, is a failure.
import { readFileSync } from 'node:fs'
import { basename, relative } from 'node:path'

let passed = 0
let failed = 0
const failures = []
for (const path of process.argv.slice(2)) {
  const report = JSON.parse(readFileSync(path, 'utf8'))
  const suite = basename(path, '.json')
  passed += report.numPassedTests
  failed += report.numFailedTests
  if (report.numTotalTests === 0 || !report.success) failed ||= 1
  console.log(`${suite}: ${report.numPassedTests} of ${report.numTotalTests} passed`)
  for (const file of report.testResults) {
    const tests = file.assertionResults.filter((test) => test.status === 'failed')
    const where = `${suite}: ${relative('.', file.name)}`
    for (const test of tests)
      failures.push(`${where}: ${test.fullName}: ${firstLines(test.failureMessages[0])}`)
    // A file that could not be loaded has a message and no tests.
    if (file.status === 'failed' && tests.length === 0) failures.push(`${where}: ${firstLines(file.message)}`)
  }
}
for (const failure of failures) console.log(`failed: ${failure}`)
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 && passed > 0 ? 0 : 1

function firstLines(message = 'no message') {
  return message.split('\n').slice(0, 6).join('\n    ')
}
