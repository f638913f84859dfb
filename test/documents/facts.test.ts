import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { namedVariables } from '../../src/cli/settings/variables.ts'
import { REJECTION_REASONS } from '../../src/domain/models/catalogue.ts'
import { METADATA_MOST } from '../../src/domain/models/score.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

const read = (name: string): string => readFileSync(join(ROOT, name), 'utf8')

const sourceFiles = (folder: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(folder, name))

describe('the documents', () => {
  test('name every variable the configuration reads, as it is described there', () => {
    const check = fileURLToPath(new URL('../../scripts/configuration-page.mjs', import.meta.url))
    const { status, stderr } = spawnSync(process.execPath, [check, '--check'], { encoding: 'utf8' })
    expect(stderr).toBe('')
    expect(status).toBe(0)
    const documented = [...read('docs/configuration.md').matchAll(/^\| `([A-Z][A-Z_]+)`/gm)]
    expect(documented.map(([, name]) => name)).toEqual(namedVariables.map(({ name }) => name))
  })

  test('name every reason of a rejection, and every part of the metadata score with its points', () => {
    for (const [reason] of Object.entries(REJECTION_REASONS))
      expect(read('docs/free-models.md')).toMatch(new RegExp(`^\\| \`${reason}\` `, 'm'))
    for (const [part, most] of Object.entries(METADATA_MOST))
      expect(read('docs/model-scores.md')).toMatch(new RegExp(`^\\| \`${part}\` +\\| ${most} `, 'm'))
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
