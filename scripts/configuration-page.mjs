/**
 * Writes the lists of docs/configuration.md and docs/commands.md from the program's own tables of variables and commands;
 * `--check` only says whether they are the same. Runs the built program: `npm run docs:configuration`.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { COMMANDS } from '../dist/cli/command-table.js'
import { inGroups, namedVariables, SECRETS } from '../dist/cli/settings/variables.js'

const BEGIN = '<!-- from here to the next such line: `npm run docs:configuration` -->'
const END = '<!-- here ends what is generated -->'

function configuration() {
  const defaultOf = ({ standard, unset }) => (standard === null ? (unset ?? null) : `\`${standard}\``)
  const lists = inGroups(namedVariables).map(([title, variables]) => {
    const lines = variables.map((variable) => {
      const { name, page } = variable
      const byDefault = defaultOf(variable)
      const guide = page ? ` ([more](${page.replace('docs/', '')}))` : ''
      return `- \`${name}\`${byDefault === null ? '' : `: ${byDefault}`}${guide}`
    })
    return `### ${title}\n\n${lines.join('\n')}`
  })
  const secrets = SECRETS.map((name) => `\`${name}_FILE\``).join(', ')
  return `${lists.join('\n\n')}\n\n### Secrets in files\n\nEach secret may stand in a file instead, such as a credential of systemd, Docker or Kubernetes. A variable names that file:\n${secrets}.`
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

function commands() {
  return COMMANDS.map(({ name }) => {
    const guide = GUIDES[name]
    if (guide === undefined) throw new Error(`no guide is named for dash ${name}`)
    return `- [\`dash ${name}\`](${guide})`
  }).join('\n')
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
