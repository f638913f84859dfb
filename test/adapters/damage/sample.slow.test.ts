import { createHash } from 'node:crypto'
import { lstatSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openObjects } from '../../../src/adapters/objects/open.ts'
import { makeDamageSample } from '../../../src/adapters/damage/sample.ts'
import type { DamageSample } from '../../../src/domain/year/finding.ts'
import { proveLedger } from '../../../src/domain/year/chain.ts'
import { proveBytes } from '../../../src/domain/year/envelope.ts'
import { reopenWorkspace } from '../../support/workspace.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { rawClient } from '../sqlite/lock-holder.ts'

let sample: DamageSample

beforeAll(async () => {
  sample = await makeDamageSample()
})

afterAll(() => sample.remove())

/** Every path of a folder with what is there: a digest for a file, else its kind. */
function stateOf(folder: string): Map<string, string> {
  return new Map(
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .sort()
      .map((name) => {
        const path = join(folder, name)
        const stat = lstatSync(path)
        if (stat.isFile()) return [name, createHash('sha256').update(readFileSync(path)).digest('hex')]
        return [name, stat.isDirectory() ? 'folder' : 'other']
      }),
  )
}

describe('the sample', () => {
  test('is an archive that proves itself as a server proves it, down to every payload', async () => {
    const { ledger, archive, year } = reopenWorkspace(await sample.restored())
    const { proved, head } = await year.read()
    expect(head).toMatchObject({ seq: sample.keptHead.seq, leaf: sample.keptHead.leaf })
    expect(proveLedger(await ledger.read(), sample.keptHead).timeline).toHaveLength(9)
    for (const { manifest } of proved.timeline) {
      expect(proveBytes(manifest, await archive.get(manifest.sha256)).byteLength).toBe(manifest.byteSize)
    }
  })

  test('holds every kind of row there is', async () => {
    const { proved } = await reopenWorkspace(await sample.restored()).year.read()
    const kinds = proved.entries.map((entry) =>
      entry.kind === 'publication'
        ? entry.manifest.algorithmVersion
        : entry.kind === 'gap'
          ? entry.reason
          : entry.kind,
    )
    expect(kinds).toEqual([
      'top-year-v2',
      'top-year-v2',
      'legacy-seal',
      'top-year-v3',
      'missed',
      'attempts_spent',
      'top-year-v3',
      'top-year-v3',
      'top-year-v3',
    ])
    expect(proved.timeline.filter(({ ledger }) => ledger === 'v1')).toHaveLength(3)
  })

  test('is the same each time it is made, but for the file of its ledger', async () => {
    const other = await makeDamageSample(await temporaryFolder())
    const objects = (folder: string): Map<string, string> => stateOf(join(folder, 'objects'))
    expect(objects(await other.restored())).toEqual(objects(await sample.restored()))
    expect(other.keptHead).toEqual(sample.keptHead)
    await other.remove()
  })

  test('leaves nothing behind when it is removed', async () => {
    const parent = await temporaryFolder()
    const other = await makeDamageSample(parent)
    expect(readdirSync(parent)).toHaveLength(1)
    await other.remove()
    expect(readdirSync(parent)).toEqual([])
  })
})

describe('the mutations', () => {
  test('each have a name of their own and say what must be reported', () => {
    const names = sample.mutations.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
    expect(names.length).toBeGreaterThan(300)
    for (const { name, expects } of sample.mutations) expect(expects.length, name).toBeGreaterThan(0)
  })

  test('each change the archive, and are undone without a trace', async () => {
    const before = stateOf(await sample.restored())
    for (const mutation of sample.mutations) {
      const folder = await sample.restored()
      expect(stateOf(folder), `before ${mutation.name}`).toEqual(before)
      await mutation.apply(folder)
      expect(stateOf(folder), mutation.name).not.toEqual(before)
    }
    expect(stateOf(await sample.restored())).toEqual(before)
  })

  test('need a kept head only where both stores still prove each other', async () => {
    for (const mutation of sample.mutations.filter(({ needsKeptHead }) => needsKeptHead)) {
      const folder = await sample.restored()
      await mutation.apply(folder)
      const { year, archive } = reopenWorkspace(folder)
      const { proved } = await year.read()
      for (const { manifest } of proved.timeline) {
        const bytes = await archive.get(manifest.sha256)
        expect(proveBytes(manifest, bytes), mutation.name).toBe(bytes)
      }
    }
  })

  test('edit every column of every kind of row', async () => {
    const edits = sample.mutations.map(({ name }) => name).filter((name) => name.endsWith(' edited'))
    const raw = rawClient(pathToFileURL(join(await sample.restored(), 'ledger.db')).href)
    for (const [table, rows] of [
      [
        'entries',
        ['entry 1 (publication)', 'entry 3 (legacy-seal)', 'entry 5 (gap)', 'entry 9 (publication)'],
      ],
      ['legacy_publications', ['legacy row 2']],
    ] as const) {
      const columns = (await raw.execute(`PRAGMA table_info(${table})`)).rows.map((row) =>
        typeof row['name'] === 'string' ? row['name'] : '',
      )
      expect(columns.length).toBeGreaterThan(10)
      for (const row of rows)
        for (const column of columns) expect(edits).toContain(`${row}: ${column} edited`)
    }
  })

  test('do what their names say to a cell and to nothing else', async () => {
    const edit = sample.mutations.find(({ name }) => name === 'entry 5 (gap): attempts edited')
    const folder = await sample.restored()
    const cells = async (): Promise<unknown[][]> => {
      const raw = rawClient(pathToFileURL(join(folder, 'ledger.db')).href)
      const { rows } = await raw.execute('SELECT * FROM entries ORDER BY seq')
      raw.close()
      return rows.map((row) => Array.from(row))
    }
    const before = await cells()
    await edit?.apply(folder)
    const after = await cells()
    const changed = after.flatMap((row, index) =>
      row.flatMap((cell, column) => (cell === before[index]?.[column] ? [] : [[index + 1, column, cell]])),
    )
    expect(changed).toEqual([[5, 15, 100]])
  })

  test('that lose only the newest head are none: a crash after a commit leaves it so', async () => {
    const folder = await sample.restored()
    rmSync(join(folder, 'objects', 'heads', String(sample.keptHead.seq)))
    await expect(reopenWorkspace(folder).year.read()).resolves.toBeDefined()
    const archive = openObjects({ kind: 'file', path: join(folder, 'objects') })
    expect((await archive.newestHead())?.seq).toBe(sample.keptHead.seq - 1)
  })
})
