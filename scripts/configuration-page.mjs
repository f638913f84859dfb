/**
 * Writes the tables of docs/configuration.md from the table of variables; `--check` only says whether they are the
 * same. Runs the built program: `npm run docs:configuration`.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { SETTING_FLAGS } from '../dist/cli/settings/flags.js'
import { inGroups, namedVariables, SECRETS } from '../dist/cli/settings/variables.js'

const PAGE = new URL('../docs/configuration.md', import.meta.url)
const BEGIN = '<!-- from here to the next such line: `npm run docs:configuration` -->'
const END = '<!-- here ends what is generated -->'

function flagOf(name) {
  const { flag, of } = SETTING_FLAGS[name] ?? {}
  return flag === undefined ? '' : `; \`${flag}\`${of === undefined ? '' : ` of \`${of}\``}`
}

const meaningOf = ({ name, meaning, page }) =>
  `${meaning}${flagOf(name)}${page ? ` ([more](${page.replace('docs/', '')}))` : ''}`

const defaultOf = ({ standard, unset }) => (standard === null ? (unset ?? 'none') : `\`${standard}\``)

function table(head, rows) {
  const widths = head.map((cell, column) => Math.max(...[head, ...rows].map((row) => row[column].length)))
  const line = (cells) => `| ${cells.map((cell, column) => cell.padEnd(widths[column])).join(' | ')} |`
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n')
}

const tables = inGroups(namedVariables).map(([title, variables]) => {
  const rows = variables.map((variable) => [`\`${variable.name}\``, defaultOf(variable), meaningOf(variable)])
  return `### ${title}\n\n${table(['variable', 'default', 'meaning'], rows)}`
})
const secrets = SECRETS.map((name) => `- \`${name}_FILE\``)
const generated = `${tables.join('\n\n')}\n\n### Secrets in files\n\nEach secret may also stand in a file, which the variable of this name names:\n\n${secrets.join('\n')}`

const page = readFileSync(PAGE, 'utf8')
const [before, rest] = page.split(`${BEGIN}\n`)
const after = rest?.split(END)[1]
if (after === undefined)
  throw new Error('docs/configuration.md has lost the lines that mark what is generated')
const wanted = `${before}${BEGIN}\n\n${generated}\n\n${END}${after}`

if (!process.argv.includes('--check')) writeFileSync(PAGE, wanted)
else if (wanted !== page) {
  process.stderr.write('docs/configuration.md is not what the variables say: npm run docs:configuration\n')
  process.exitCode = 1
}
