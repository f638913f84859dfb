import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { EXIT } from '../src/cli/exit-codes.ts'
import { namedVariables } from '../src/cli/settings/variables.ts'
import { MCP_REFUSALS } from '../src/domain/agent/mcp.ts'
import { AGENT_ERRORS } from '../src/domain/agent/refusals.ts'
import { LIVE_REFUSALS } from '../src/domain/feed/live-refusals.ts'
import { SEARCH_REFUSALS } from '../src/domain/feed/search-refusals.ts'
import { REJECTION_REASONS } from '../src/domain/models/eligibility.ts'
import { METADATA_MOST } from '../src/domain/models/metadata-score.ts'
import { FREE_MODELS_REFUSALS } from '../src/domain/models/refusals.ts'
import { HISTORY_REFUSALS } from '../src/domain/year/refusals.ts'
import { dash } from './support/dash.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

const pages = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'bench/README.md',
  'assets/demo/SOURCES.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' }).map((name) => `docs/${name}`),
].filter((name) => name.endsWith('.md'))

const read = (name: string): string => readFileSync(join(ROOT, name), 'utf8')

const sourceFiles = (folder: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(folder, name))

describe('the documents', () => {
  const operating = [
    'docs/configuration.md',
    'docs/operations.md',
    'docs/troubleshooting.md',
    'docs/history-api.md',
    'docs/feed-api.md',
    'docs/search.md',
    'docs/free-models.md',
    'docs/agent-chat.md',
    'docs/mcp.md',
    'docs/page.md',
    'docs/monitoring.md',
  ]
  const all = operating.map(read).join('\n')

  test('name every variable the configuration reads, as it is described there', () => {
    const check = fileURLToPath(new URL('../scripts/configuration-page.mjs', import.meta.url))
    const { status, stderr } = spawnSync(process.execPath, [check, '--check'], { encoding: 'utf8' })
    expect(stderr).toBe('')
    expect(status).toBe(0)
    const documented = [...read('docs/configuration.md').matchAll(/^\| `([A-Z][A-Z_]+)`/gm)]
    expect(documented.map(([, name]) => name)).toEqual(namedVariables.map(({ name }) => name))
  })

  test('name every flag of every command', async () => {
    for (const command of [
      ['serve'],
      ['import', 'signals'],
      ['import', 'articles'],
      ['import', 'archive'],
      ['publish-year'],
      ['collect'],
      ['snapshot'],
      ['search'],
      ['reindex'],
      ['evaluate-models'],
      ['model'],
      ['chat'],
      ['mcp'],
      ['init'],
      ['config'],
      ['doctor'],
      ['healthcheck'],
      ['completion'],
    ]) {
      const { stdout } = await dash([...command, '--help'])
      const flags = [...stdout.matchAll(/^ {2}(?:-\w, )?(--[a-z-]+)/gm)].map(([, flag = '']) => flag)
      expect(flags.length).toBeGreaterThan(5)
      for (const flag of flags) expect(read('docs/configuration.md'), flag).toContain(`\`${flag}`)
    }
  })

  test('name every refusal code and every exit code', () => {
    for (const code of [
      ...HISTORY_REFUSALS,
      ...LIVE_REFUSALS,
      ...SEARCH_REFUSALS,
      ...FREE_MODELS_REFUSALS,
      ...AGENT_ERRORS,
      ...MCP_REFUSALS,
    ]) {
      expect(all, code).toContain(`\`${code}\``)
    }
    for (const code of Object.values(EXIT))
      expect(all).toMatch(new RegExp(`^\\| (?:\\d+, )*${code}(?:, \\d+)* `, 'm'))
  })

  test('name every reason of a rejection, and every part of the metadata score with its points', () => {
    for (const [reason] of Object.entries(REJECTION_REASONS))
      expect(read('docs/free-models.md')).toMatch(new RegExp(`^\\| \`${reason}\` `, 'm'))
    for (const [part, most] of Object.entries(METADATA_MOST))
      expect(read('docs/model-scores.md')).toMatch(new RegExp(`^\\| \`${part}\` +\\| ${most} `, 'm'))
  })

  test('name every path the server answers', () => {
    const paths = sourceFiles('src/server')
      .filter((name) => !name.includes('/demo/'))
      .flatMap((name) => [...read(name).matchAll(/app\.(?:get|all)\(\s*'(\/[^']*)'|path: '(\/[^']+)'/g)])
      .map(([, mounted, contract]) => mounted ?? contract ?? '')
      .filter((path) => !path.startsWith('/assets/') && path !== '/')
    expect(paths.length).toBeGreaterThan(3)
    for (const path of paths) expect(`${all}${read('README.md')}`, path).toContain(path)
  })

  test.each(pages)('%s has no link that leads nowhere', (name) => {
    const targets = [...read(name).matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)].map(([, target = '']) => target)
    const broken = targets.filter(
      (target) => !/^https?:/.test(target) && !existsSync(resolve(ROOT, dirname(name), target)),
    )
    expect(broken).toEqual([])
  })

  test('exist wherever the sources cite one', () => {
    const cited = sourceFiles('src').flatMap((name) => read(name).match(/[\w./-]+\.md\b/g) ?? [])
    expect(cited.length).toBeGreaterThan(20)
    expect([...new Set(cited)].filter((name) => !existsSync(join(ROOT, name)))).toEqual([])
  })

  test('list every decision', () => {
    const decisions = readdirSync(join(ROOT, 'docs/decisions')).filter((name) => /^\d{4}-/.test(name))
    expect(decisions.length).toBeGreaterThan(0)
    for (const name of decisions) expect(read('docs/decisions/README.md')).toContain(`(${name})`)
  })

  test('show every folder of the sources on the map', () => {
    const map = read('docs/architecture.md')
    const folders = readdirSync(join(ROOT, 'src'), { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isDirectory(),
    )
    for (const { name } of folders) expect(map, name).toContain(`${name}/`)
  })
})
