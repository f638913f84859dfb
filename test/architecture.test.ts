import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Layers and packages that each layer may import (docs/architecture.md). */
const RULES: Record<string, { layers: string; packages: string; hasNode: boolean }> = {
  domain: { layers: '', packages: 'zod ipaddr.js', hasNode: false },
  adapters: {
    layers: 'domain',
    packages:
      '@libsql/client drizzle-orm unstorage aws4fetch lru-cache p-limit undici linkedom @mozilla/readability @exodus/bytes parse5 openai just-bash eventsource-parser zod',
    hasNode: true,
  },
  jobs: { layers: 'domain', packages: 'p-limit', hasNode: false },
  server: {
    layers: 'domain',
    packages:
      'h3 listhen srvx marked dompurify eventsource-parser lru-cache p-limit prom-client @modelcontextprotocol/sdk zod',
    hasNode: true,
  },
  cli: {
    layers: 'domain adapters jobs server',
    packages: 'commander @clack/prompts marked fast-string-width fast-wrap-ansi pino zod',
    hasNode: true,
  },
}

/** The only file of the domain that may import a Node module, for digests. */
const DIGEST_FILE = 'src/domain/digest.ts'

interface Import {
  file: string
  layer: string
  target: string
}

const IMPORT_PATTERN =
  /(?:^|[\s;(])(?:import|export)\s*(?:type\s)?(?:[\w*\s{},$]*\sfrom\s*)?\(?\s*['"]([^'"]+)['"]/g

function importsOf(file: string): string[] {
  return [...readFileSync(join(ROOT, file), 'utf8').matchAll(IMPORT_PATTERN)].map(([, target = '']) => target)
}

function allImports(): Import[] {
  const files = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join('src', name))
  return files.flatMap((file) => {
    const layer = file.split('/')[1] ?? ''
    return importsOf(file).map((target) => ({ file, layer, target }))
  })
}

/** Returns the reason why an import breaks the rule, or null. */
function breach({ file, layer, target }: Import): string | null {
  const rule = RULES[layer]
  if (!rule) return `${file} is in no known layer`
  if (target.startsWith('.')) {
    const targetLayer = relative(join(ROOT, 'src'), resolve(ROOT, dirname(file), target)).split('/')[0] ?? ''
    const allowed = targetLayer === layer || rule.layers.split(' ').includes(targetLayer)
    return allowed ? null : `${file} (${layer}) imports ${targetLayer}: ${target}`
  }
  if (target.startsWith('node:')) {
    if (file === DIGEST_FILE && target === 'node:crypto') return null
    return rule.hasNode ? null : `${file} (${layer}) imports ${target}`
  }
  const name = target.startsWith('@') ? target.split('/').slice(0, 2).join('/') : (target.split('/')[0] ?? '')
  return rule.packages.split(' ').includes(name) ? null : `${file} (${layer}) imports the package ${name}`
}

describe('the import rule', () => {
  const imports = allImports()

  test('the rule is read from existing files', () => {
    expect(new Set(imports.map(({ layer }) => layer))).toEqual(new Set(Object.keys(RULES)))
    expect(imports.length).toBeGreaterThan(100)
  })

  test('the rule holds for every import', () => {
    expect(imports.flatMap((each) => breach(each) ?? [])).toEqual([])
  })

  test('adapters meet only in the container and its stores', () => {
    const introducing = imports.filter(
      ({ layer, target }) => layer === 'cli' && target.includes('/adapters/'),
    )
    const files = [...new Set(introducing.map(({ file }) => file))].sort()
    expect(files).toEqual(['src/cli/container.ts', 'src/cli/stores.ts'])
  })
})

describe('modules loaded at the start', () => {
  /** Returns the modules that importing a file loads: no types, and no dynamic imports. */
  function broughtAlong(file: string, found = new Set<string>()): Set<string> {
    if (found.has(file)) return found
    found.add(file)
    const statics = /^(?:import|export)\s+(?!type\b)(?:[\w*\s{},$]+?\sfrom\s+)?'([^']+)'/gm
    for (const [, target = ''] of readFileSync(join(ROOT, file), 'utf8').matchAll(statics)) {
      if (target.startsWith('.')) broughtAlong(relative(ROOT, resolve(ROOT, dirname(file), target)), found)
      else found.add(target)
    }
    return found
  }

  test('the help loads only the libraries of command lines and settings', () => {
    const packages = [...broughtAlong('src/cli/main.ts')].filter((name) => !/^(?:src\/|node:)/.test(name))
    expect(packages).toEqual(['commander'])
  })

  test('a server starts without the MCP library', () => {
    const brought = broughtAlong('src/cli/commands/serve.ts')
    expect(brought.size).toBeGreaterThan(100)
    expect([...brought].filter((name) => name.includes('modelcontextprotocol'))).toEqual([])
    expect(broughtAlong('src/cli/commands/mcp.ts')).toContain('@modelcontextprotocol/sdk/types.js')
  })

  test('an audit of the ledger loads the tables, and no query builder', () => {
    const brought = new Set(
      ['auditors', 'sqlite/lease'].flatMap((name) => [...broughtAlong(`src/adapters/${name}.ts`)]),
    )
    expect(brought).toContain('drizzle-orm/sqlite-core/table')
    expect([...brought].filter((name) => /^drizzle-orm(?:$|\/(?:sqlite-core|libsql)$)/.test(name))).toEqual(
      [],
    )
  })
})

/** Returns the files of an import cycle through `from`, types included; empty without a cycle. */
function circleFrom(from: string, targets: ReadonlyMap<string, readonly string[]>): string[] {
  const ways: string[][] = [[from]]
  const seen = new Set<string>()
  for (let way = ways.shift(); way; way = ways.shift()) {
    for (const target of targets.get(way.at(-1) ?? '') ?? []) {
      if (target === from) return way
      if (!seen.has(target)) ways.push([...way, target])
      seen.add(target)
    }
  }
  return []
}

describe('files', () => {
  const graph = new Map<string, string[]>()
  for (const { file, target } of allImports()) {
    if (!target.startsWith('.')) continue
    graph.set(file, [...(graph.get(file) ?? []), relative(ROOT, resolve(ROOT, dirname(file), target))])
  }

  test('files have no circular imports, not even of types', () => {
    expect(graph.size).toBeGreaterThan(200)
    expect(
      [...graph.keys()].map((file) => circleFrom(file, graph)).filter(({ length }) => length > 0),
    ).toEqual([])
  })
})

describe('the domain', () => {
  const files = readdirSync(join(ROOT, 'src/domain'), { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  )

  test('the domain uses no clock, no random numbers and no asynchronous code', () => {
    const found = files.flatMap((name) => {
      const code = readFileSync(join(ROOT, 'src/domain', name), 'utf8')
      return /new Date\(\)|Date\.now|Math\.random|\basync\b|\bawait\b/.test(code) ? [name] : []
    })
    expect(files.length).toBeGreaterThan(10)
    expect(found).toEqual([])
  })
})
