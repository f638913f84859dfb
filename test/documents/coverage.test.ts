import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { EXIT } from '../../src/cli/exit-codes.ts'
import { openApp } from '../support/api-client.ts'
import { interfacesOf, read, rowsOf, sectionOf } from './examples.ts'
import { openWorkspace } from '../support/workspace.ts'
import { namedVariables } from '../../src/cli/settings/variables.ts'
import { REJECTION_REASONS } from '../../src/domain/models/catalogue.ts'
import { METADATA_MAX } from '../../src/domain/models/score.ts'

/** The members of a union of strings in a source file. */
function codesIn(file: string, type: string): string[] {
  const union = new RegExp(`type ${type} =([^]*?)\\n\\n`).exec(read(file))?.[1] ?? ''
  const codes = [...union.matchAll(/['`](\w+?)(?:\$\{number\})?['`]/g)].map(([, code = '']) => code)
  expect(codes.length).toBeGreaterThan(8)
  return codes
}

describe('the documents name', () => {
  test('the API guide names every path of the server', async () => {
    const guide = read('docs/api.md')
    const paths = openApp(await openWorkspace())['~routes'].map(({ route }) => route ?? '')
    // Guides and assets are named by the pages that link them.
    const others = /^\/assets\/|^\/docs\/(?!.*\/openapi\.json$)|\/\*\*$/
    const named = paths.filter((path) => !others.test(path))
    expect(named.length).toBeGreaterThan(20)
    const isMissing = (path: string): boolean =>
      !guide.includes(`\`${path}\``) && !guide.includes(`\`${path}?`)
    expect(named.filter(isMissing)).toEqual([])
  })

  test('the error page lists exactly the refusals of every interface, each with status, cause and remedy', async () => {
    const interfaces = await interfacesOf(openApp(await openWorkspace()))
    expect(interfaces.length).toBeGreaterThan(4)
    const REFUSAL = /^- (\d{3}) `([\w…]+)`: .*\w.*; .*\w.*$/gm
    const documentedBelow = (heading: string): string[] => {
      const section = sectionOf('docs/errors.md', `## ${heading}`)
      const documented = Array.from(section.matchAll(REFUSAL), ([, status, error]) => `${status} ${error}`)
      expect(section.match(/^- \d{3} /gm) ?? [], heading).toHaveLength(documented.length)
      return documented
    }
    const hasMessages = (heading: string): boolean => !['Chat', 'OpenAI clients'].includes(heading)
    const shared = documentedBelow('Every interface')
    const unused = new Set(shared.filter((refusal) => refusal !== '400 invalid_…'))
    for (const { name, heading, refusals } of interfaces) {
      expect(refusals.length).toBeGreaterThan(2)
      const given = refusals.map(({ status, error }) => `${status} ${error}`)
      for (const refusal of given) unused.delete(refusal)
      const beside = name === 'agent-chat' ? ['404 not_found'] : []
      const isShared = (refusal: string): boolean =>
        shared.includes(refusal) || (hasMessages(heading) && refusal.startsWith('400 invalid_'))
      const own = [...given, ...beside].filter((refusal) => !isShared(refusal))
      expect(documentedBelow(heading).sort(), name).toEqual(own.sort())
    }
    expect([...unused]).toEqual([])
  })

  test('the documents name every end of a chat answer, with a remedy', () => {
    const codes = codesIn('src/domain/agent/model-call.ts', 'FailureCode')
    for (const code of codes) {
      const named = `\`${code.endsWith('_') ? `${code}<status>` : code}\``
      const rows = rowsOf('docs/agent-chat.md').filter((cells) => cells.slice(0, 2).includes(named))
      expect([code, rows.length > 0, rows.flat().every((cell) => cell.length > 3)]).toEqual([
        code,
        true,
        true,
      ])
    }
  })

  test('the documents name every exit code, with a remedy', () => {
    const rows = rowsOf('docs/troubleshooting.md').filter(([code = '']) => /^[1-3]?\d?\d(, \d+)*$/.test(code))
    const codes = rows.flatMap(([code = '']) => code.split(', ').map(Number))
    expect(codes.sort((a, b) => a - b)).toEqual(Object.values(EXIT).sort((a, b) => a - b))
    for (const [code, cause = '', mend = ''] of rows)
      expect([code, cause.length > 3, code === '0' || mend.length > 3]).toEqual([code, true, true])
  })

  test('the documents name every finding of an audit, with a remedy', () => {
    for (const code of codesIn('src/domain/year/finding.ts', 'FindingCode')) {
      const [, cause = '', mend = ''] = rowsOf('docs/auditing.md', `\`${code}\``)[0] ?? []
      expect([code, cause.length > 3, mend.length > 3]).toEqual([code, true, true])
    }
  })
})

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const sourceFiles = (folder: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(folder, name))

describe('the documents', () => {
  test('the documents list every variable in the order of the configuration', () => {
    const documented = [...read('docs/configuration.md').matchAll(/^- `([A-Z][A-Z\d_]+)`/gm)]
    expect(documented.map(([, name]) => name)).toEqual(namedVariables.map(({ name }) => name))
  })

  test('the documents name every rejection reason and every part of the metadata score with its points', () => {
    for (const [reason] of Object.entries(REJECTION_REASONS))
      expect(read('docs/free-models.md')).toMatch(new RegExp(`^\\| \`${reason}\` `, 'm'))
    for (const [part, most] of Object.entries(METADATA_MAX))
      expect(read('docs/model-scores.md')).toMatch(new RegExp(`^\\| \`${part}\` +\\| ${most} `, 'm'))
  })

  test('every document that the sources cite exists', () => {
    const cited = sourceFiles('src').flatMap((name) => read(name).match(/[\w./-]+\.md\b/g) ?? [])
    expect(cited.length).toBeGreaterThan(20)
    expect([...new Set(cited)].filter((name) => !existsSync(join(ROOT, name)))).toEqual([])
  })

  test('the list of decisions is complete', () => {
    const decisions = readdirSync(join(ROOT, 'docs/decisions')).filter((name) => /^\d{4}-/.test(name))
    expect(decisions.length).toBeGreaterThan(0)
    for (const name of decisions) expect(read('docs/decisions/README.md')).toContain(`(${name})`)
  })

  test('the map of the architecture page shows every source folder', () => {
    const map = read('docs/architecture.md')
    const inside = readdirSync(join(ROOT, 'src'), { recursive: true, withFileTypes: true })
    for (const { name } of inside.filter((entry) => entry.isDirectory()))
      expect(map, name).toContain(`${name}/`)
  })
})
