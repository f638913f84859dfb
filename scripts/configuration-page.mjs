/**
 * Writes the tables of docs/configuration.md and docs/commands.md from the program's own tables of variables, commands and
 * flags; `--check` only says whether they are the same. Runs the built program: `npm run docs:configuration`.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { COMMANDS, sharedOptions } from '../dist/cli/command-table.js'
import { SETTING_FLAGS } from '../dist/cli/settings/flags.js'
import { inGroups, namedVariables, SECRETS } from '../dist/cli/settings/variables.js'

const BEGIN = '<!-- from here to the next such line: `npm run docs:configuration` -->'
const END = '<!-- here ends what is generated -->'

function table(head, rows) {
  const widths = head.map((cell, column) => Math.max(...[head, ...rows].map((row) => row[column].length)))
  const line = (cells) => `| ${cells.map((cell, column) => cell.padEnd(widths[column])).join(' | ')} |`
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n')
}

function flagOf(name) {
  const { flag, of } = SETTING_FLAGS[name] ?? {}
  return flag === undefined ? '' : `; \`${flag}\`${of === undefined ? '' : ` of \`${of}\``}`
}

function configuration() {
  const meaningOf = ({ name, meaning, page }) =>
    `${meaning}${flagOf(name)}${page ? ` ([more](${page.replace('docs/', '')}))` : ''}`
  const defaultOf = ({ standard, unset }) => (standard === null ? (unset ?? 'none') : `\`${standard}\``)
  const tables = inGroups(namedVariables).map(([title, variables]) => {
    const rows = variables.map((variable) => [
      `\`${variable.name}\``,
      defaultOf(variable),
      meaningOf(variable),
    ])
    return `### ${title}\n\n${table(['variable', 'default', 'meaning'], rows)}`
  })
  const secrets = SECRETS.map((name) => `\`${name}_FILE\``).join(', ')
  return `${tables.join('\n\n')}\n\n### Secrets in files\n\nEach secret may stand in a file instead, such as a credential of systemd, Docker or Kubernetes. A variable names that file:\n${secrets}.`
}

/** Where the documents tell more of a command. */
const GUIDES = {
  serve: 'operations.md#the-server',
  chat: 'chat.md',
  'chat-key': 'agent-chat.md#keys-for-servers',
  'chat-key new': 'agent-chat.md#keys-for-servers',
  'chat-key list': 'agent-chat.md#keys-for-servers',
  'chat-key revoke': 'agent-chat.md#keys-for-servers',
  mcp: 'mcp.md',
  import: 'importing.md',
  'import signals': 'importing.md#daily-signals',
  'import articles': 'importing.md#article-texts',
  'import archive': 'importing.md#an-older-archive',
  collect: 'collecting.md',
  reindex: 'api.md',
  search: 'api.md',
  top: 'api.md#dash-top',
  'publish-year': 'publishing.md',
  checkpoint: 'signed-log.md',
  'log-key': 'signed-log.md',
  'log-key new': 'signed-log.md',
  snapshot: 'operations.md#live-periods',
  export: 'static-hosting.md',
  'verify-archive': 'auditing.md',
  verify: 'proof.md#verifying-a-publication',
  'evaluate-models': 'free-models.md',
  model: 'free-models.md',
  'copy-archive': 'backup.md',
  init: 'deployment.md#dash-init',
  config: 'deployment.md#checking-an-installation',
  doctor: 'deployment.md#dash-doctor',
}

/** Text of the program in the cell of a table; a value in angle brackets is no markup. */
const cell = (text) =>
  text.replaceAll('|', '\\|').replaceAll(/<[^>]+>(?::<[^>]+>)*/g, (value) => `\`${value}\``)

function meaningOfOption({ description, argChoices, defaultValue }) {
  const choices = argChoices ? `: ${argChoices.map((choice) => `\`${choice}\``).join(', ')}` : ''
  const standard = typeof defaultValue === 'string' ? `; default \`${defaultValue}\`` : ''
  return `${cell(description)}${choices}${standard}`
}

const rowsOfOptions = (options) => options.map((option) => [`\`${option.flags}\``, meaningOfOption(option)])

function commands() {
  const list = COMMANDS.map(({ name, description }) => {
    const guide = GUIDES[name]
    if (guide === undefined) throw new Error(`no guide is named for dash ${name}`)
    return [
      `\`dash ${name}\``,
      cell(description),
      `[${guide.replace(/\.md.*/, '').replaceAll('-', ' ')}](${guide})`,
    ]
  })
  const flags = COMMANDS.flatMap(({ name, argument, options = [] }) => {
    const ofArgument = argument
      ? [
          [
            `\`${argument.required ? `<${argument.name()}>` : `[${argument.name()}]`}\``,
            meaningOfOption(argument),
          ],
        ]
      : []
    return [...ofArgument, ...rowsOfOptions(options)].map(([flag, meaning], index) => [
      index === 0 ? `\`${name}\`` : '',
      flag,
      meaning,
    ])
  })
  return [
    table(['command', 'purpose', 'guide'], list),
    '## Flags of every command',
    'They stand before the name of the command or after it.',
    table(
      ['flag', 'meaning'],
      [
        ...rowsOfOptions(sharedOptions()),
        ['`-h`, `--help`', 'print the help of a command'],
        ['`--version`', 'print the release; of `dash` alone'],
      ],
    ),
    '## Flags of one command',
    table(['command', 'flag or argument', 'meaning'], flags),
  ].join('\n\n')
}

/** Puts the generated part into a page, or says that another one stands there. */
function renew(name, generated) {
  const file = new URL(`../docs/${name}`, import.meta.url)
  const page = readFileSync(file, 'utf8')
  const [before, rest] = page.split(`${BEGIN}\n`)
  const after = rest?.split(END)[1]
  if (after === undefined) throw new Error(`docs/${name} has lost the lines that mark what is generated`)
  const wanted = `${before}${BEGIN}\n\n${generated}\n\n${END}${after}`
  if (!process.argv.includes('--check')) writeFileSync(file, wanted)
  else if (wanted !== page) {
    process.stderr.write(`docs/${name} is not what the program says: npm run docs:configuration\n`)
    process.exitCode = 1
  }
}

renew('configuration.md', configuration())
renew('commands.md', commands())
