import { execFileSync } from 'node:child_process'
import { renameSync, rmSync, mkdirSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { getTableColumns } from 'drizzle-orm'
import { getTableConfig } from 'drizzle-orm/sqlite-core'
import { formatPolicy } from '../../../src/domain/year/log/log-policy.ts'
import {
  ENTRY,
  LOG_KEY,
  changeRow,
  damage,
  forge,
  forgeNewestObject,
  headAt,
  headFile,
  replaceObject,
  sqlLiteral,
  noteOf,
  objectFile,
  damageCell,
  damageEntries,
  damageHead,
  damageLedger,
  damageLedgerFile,
  damageLegacy,
  damageLog,
  damageObject,
  overwrite,
  publicationAt,
  publicationNamed,
  rechain,
  reseal,
  rowAt,
  withFlippedBits,
  removeHeads,
  withoutRow,
} from '../../../src/adapters/damage/damage.ts'
import type { Damage, SampleContents } from '../../../src/adapters/damage/damage.ts'
import {
  MUTATIONS,
  publicationAfter,
  rollBackLedger,
  rollBackObjects,
} from '../../../src/adapters/damage/mutations.ts'
import { entries, legacyPublications } from '../../../src/adapters/ledger/schema.ts'
import { GENESIS_LEAF, sealEntry } from '../../../src/domain/year/chain.ts'
import { formatHead } from '../../../src/domain/year/ledger.ts'
import type { Head, LedgerRow, LegacyRow } from '../../../src/domain/year/ledger.ts'
import { formatInstant } from '../../../src/domain/time.ts'

/** Every known mutation of the sample: those of the self-test, each cell of every kind of row, and further cases. */
export function everyMutation(sample: SampleContents): Damage[] {
  return [
    ...MUTATIONS,
    ...objects(sample),
    ...heads(),
    ...editedCells(sample),
    ...impossibleCells(sample),
    ...entryRows(),
    ...legacyRows(sample),
    ...ledgerFile(),
    ...rollBacks(),
    ...forgeries(),
    ...logFiles(sample),
  ]
}

/** Every character of a note and of the policy changed by one bit. */
function logFiles({ rows }: SampleContents): Damage[] {
  const texts = { [`${ENTRY.newest}`]: noteOf(rows), 'policy.1': formatPolicy([LOG_KEY], null) }
  return [
    damageLog(`${ENTRY.newest}`, 'the note of a shorter ledger', ['note_invalid'], () =>
      noteOf(rows.slice(0, ENTRY.previous)),
    ),
    ...Object.entries(texts).flatMap(([name, text]) =>
      Array.from(text, (character, position) =>
        damageLog(name, `character ${position} changed by a bit`, ['note_invalid', 'log_forked'], () => {
          const other = String.fromCharCode((character.codePointAt(0) ?? 0) ^ 1)
          return text.slice(0, position) + other + text.slice(position + 1)
        }),
      ),
    ),
  ]
}

/** A gap that continues the rows; another leaf than the last row's breaks the chain. */
function gapAfter(rows: readonly LedgerRow[], previousLeaf = rows.at(-1)?.leaf ?? GENESIS_LEAF): LedgerRow {
  const gap = { kind: 'gap', asOfDay: '2026-01-20', reason: 'missed', attempts: 0 } as const
  return sealEntry(gap, rows.length + 1, rows.at(-1)?.recordedAt ?? 0, previousLeaf)
}

function renumber(rows: readonly LedgerRow[]): LedgerRow[] {
  return rows.map((row, index) => ({ ...row, seq: index + 1 }))
}

function swapRows(rows: readonly LedgerRow[], first: number, second: number): LedgerRow[] {
  return rows.with(first - 1, rowAt(rows, second)).with(second - 1, rowAt(rows, first))
}

/** Statements that make a table accept values of any type. */
function withoutTypes(table: typeof entries | typeof legacyPublications): string[] {
  const { name: tableName, columns } = getTableConfig(table)
  return [
    `CREATE TABLE untyped (${columns.map(({ name }) => name).join(', ')})`,
    `INSERT INTO untyped SELECT * FROM ${tableName}`,
    `DROP TABLE ${tableName}`,
    `ALTER TABLE untyped RENAME TO ${tableName}`,
  ]
}

const PUBLICATIONS = [
  ENTRY.firstImported,
  ENTRY.lastImported,
  ENTRY.firstOwn,
  ENTRY.beforePrevious,
  ENTRY.previous,
  ENTRY.newest,
]

function objects({ legacy }: SampleContents): Damage[] {
  const positions: Record<string, (size: number) => number> = { first: () => 0, last: (size) => size - 1 }
  return [
    ...PUBLICATIONS.flatMap((seq) =>
      Object.entries(positions).map(([place, positionIn]) =>
        damageObject(seq, `a bit of its ${place} byte flipped`, ['digest_mismatch'], (bytes) =>
          withFlippedBits(bytes, positionIn(bytes.byteLength), 1),
        ),
      ),
    ),
    damageObject(ENTRY.newest, 'cut to nothing', ['size_mismatch'], () => ''),
    damageObject(ENTRY.newest, 'a byte appended', ['size_mismatch'], (_bytes, text) => `${text}\n`),
    damageObject(ENTRY.newest, 'its second half zeroed', ['digest_mismatch'], (bytes) =>
      Uint8Array.from(bytes).fill(0, bytes.byteLength >> 1),
    ),
    damageObject(
      ENTRY.newest,
      'another valid envelope of the same size',
      ['digest_mismatch'],
      (_bytes, text) => text.replace(/"title":"./, '"title":"X'),
    ),
    replaceObject(ENTRY.newest, 'moved to another name', ['object_missing'], (path, bytes) =>
      overwrite(`${path}.moved`, bytes),
    ),
    replaceObject(
      ENTRY.newest,
      'a pipe in its place, not to be waited for',
      ['object_unreadable'],
      (path) => void execFileSync('mkfifo', [path]),
    ),
    damage('objects: all gone', ['object_missing'], ({ objectsPath }) =>
      rmSync(join(objectsPath, 'sha256'), { recursive: true }),
    ),
    replaceObject(ENTRY.newest, 'a link to nothing', ['object_unreadable'], (path) =>
      symlinkSync(`${path}.nowhere`, path),
    ),
    replaceObject(ENTRY.newest, 'a socket in its place', ['object_unreadable'], createSocket),
    replaceObject(ENTRY.newest, 'a file in the place of its folder', ['object_unreadable'], (path, _bytes) =>
      overwrite(dirname(path), 'a file'),
    ),
    damage('objects: the newest replaced by the one before', ['digest_mismatch'], (copy) =>
      overwrite(
        objectFile(copy, publicationAt(copy, ENTRY.newest)),
        publicationAt(copy, ENTRY.previous).bytes,
      ),
    ),
    {
      ...damage('objects: a file whose name is no digest', ['orphan_object'], ({ objectsPath }) =>
        overwrite(join(objectsPath, 'sha256/zz/readme'), 'not an object'),
      ),
      sound: true,
    },
    ...legacy.flatMap(({ position, publicationId }) => [
      damage(`legacy object ${position}: gone`, ['object_missing'], (copy) =>
        rmSync(objectFile(copy, publicationNamed(copy.sample, publicationId))),
      ),
      damage(`legacy object ${position}: a bit flipped`, ['digest_mismatch'], (copy) => {
        const publication = publicationNamed(copy.sample, publicationId)
        overwrite(objectFile(copy, publication), withFlippedBits(publication.bytes, 40, 1))
      }),
    ]),
  ]
}

/** A socket remains after it was moved away from the path of its server. */
async function createSocket(path: string): Promise<void> {
  const server = createServer()
  const first = join(dirname(path), 's')
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(first, resolve))
  renameSync(first, path)
  await new Promise((resolve) => server.close(resolve))
}

function heads(): Damage[] {
  const gone: Record<string, readonly number[]> = {
    'that of the founding gone': [ENTRY.lastImported],
    'that of the seal gone': [ENTRY.seal],
    'all but the newest gone': [2, 3, 4, 5, 6, 7, 8],
  }
  const contents: Record<string, (head: Head) => string | Uint8Array> = {
    'the leaf edited': (head) =>
      formatHead({ ...head, leaf: head.leaf.slice(0, -1) + (head.leaf.endsWith('0') ? '1' : '0') }),
    'the number of another entry': (head) => formatHead({ ...head, seq: head.seq - 1 }),
    'the leaf in upper case': (head) => formatHead({ ...head, leaf: head.leaf.toUpperCase() }),
    'not UTF-8': (head) => withFlippedBits(new TextEncoder().encode(formatHead(head)), 40, 0x80),
    cut: (head) => formatHead(head).slice(0, -2),
    'a member too many': (head) => formatHead(head).replace('{', '{"more":1,'),
    'no time': (head) => formatHead(head).replace(/"time":"[^"]*"/, '"time":"yesterday"'),
    empty: () => '',
  }
  const added: Record<string, (head: Head) => [name: string, text: string]> = {
    'one of entry 1 with another leaf': (head) => ['1', formatHead({ ...head, seq: 1 })],
    'a file with another name among them': (head) => ['newest', formatHead(head)],
    'a number written another way': (head) => ['09', formatHead(head)],
  }
  return [
    ...Object.entries(gone).map(([what, seqs]) => removeHeads(what, seqs)),
    damage('heads: all gone', ['head_mismatch'], ({ objectsPath }) =>
      rmSync(join(objectsPath, 'heads'), { recursive: true }),
    ),
    ...[ENTRY.newest, ENTRY.previous].flatMap((seq) => [
      ...Object.entries(contents).map(([what, content]) => damageHead(seq, what, content)),
      damage(`head ${seq}: a folder in its place`, ['head_mismatch'], (copy) => {
        rmSync(headFile(copy, seq))
        mkdirSync(headFile(copy, seq))
      }),
    ]),
    damage('heads: a link in the place of one', ['head_mismatch'], (copy) => {
      const path = headFile(copy, ENTRY.previous)
      renameSync(path, join(copy.folder, 'moved-head'))
      symlinkSync(join(copy.folder, 'moved-head'), path)
    }),
    damage('heads: two swapped', ['head_mismatch'], (copy) => {
      overwrite(headFile(copy, ENTRY.previous), formatHead(headAt(copy, ENTRY.newest)))
      overwrite(headFile(copy, ENTRY.newest), formatHead(headAt(copy, ENTRY.previous)))
    }),
    ...Object.entries(added).map(([what, made]) =>
      damage(`heads: ${what}`, ['head_mismatch'], (copy) => {
        const [name, text] = made(headAt(copy, ENTRY.newest))
        overwrite(join(copy.objectsPath, 'heads', name), text)
      }),
    ),
  ]
}

/** Every column of a row of every kind, changed as little as its type allows. */
function editedCells({ rows, legacy }: SampleContents): Damage[] {
  const edits = (table: typeof entries | typeof legacyPublications, row: object, place: number): Damage[] => {
    const cells = new Map<string, unknown>(Object.entries(row))
    return Object.entries(getTableColumns(table)).map(([property, { name, dataType }]) =>
      damageCell(table, place, name, 'another value', editedCell(cells.get(property), dataType)),
    )
  }
  const seqs = [ENTRY.firstImported, ENTRY.seal, ENTRY.missedGap, ENTRY.newest]
  return [
    ...seqs.flatMap((seq) => edits(entries, rowAt(rows, seq), seq)),
    ...edits(legacyPublications, legacy[1] ?? {}, 2),
  ]
}

function editedCell(value: unknown, dataType: string): string {
  if (typeof value === 'number') return sqlLiteral(value + 100)
  // The first character with its lowest bit turned over; the last one could make one id into another.
  if (typeof value === 'string')
    return sqlLiteral(`${String.fromCharCode(value.charCodeAt(0) ^ 1)}${value.slice(1)}`)
  return sqlLiteral(dataType === 'number' ? 1 : 'x')
}

type Values = Record<string, string | ((column: string) => string)>

/** Values that no cell of a type can hold: the driver ends the process on some and truncates others. */
const IMPOSSIBLE: Record<'texts' | 'numbers' | 'digests', { strict: Values; loose: Values }> = {
  texts: {
    strict: {
      'bytes that are not UTF-8': "CAST(x'c328' AS TEXT)",
      'a NUL at the end': (column) => `${column} || CAST(x'00' AS TEXT)`,
      'half of a surrogate pair': "CAST(x'eda080' AS TEXT)",
    },
    loose: { 'bytes instead of a text': "x'616263'", 'a number instead of a text': '12' },
  },
  numbers: {
    strict: {
      'the greatest of all integers': '9223372036854775807',
      'a number too large to be exact': '9007199254740993',
      'a time that is no date': '8640000000000001',
      'a negative number': '-1',
    },
    loose: {
      'a text instead of a number': "'1767830400000'",
      'a fraction': '1.5',
      'an infinite number': '9e999',
      'bytes instead of a number': "x'01'",
    },
  },
  digests: {
    strict: {
      'a path': "'../../etc/passwd'",
      'an absolute path': "'/etc/passwd'",
      'upper case': (column) => `upper(${column})`,
      'an empty text': "''",
    },
    loose: { nothing: 'NULL' },
  },
}

/** Each of those values in every cell of a publication that it does not fit, but for the number of the row. */
function impossibleCells({ rows, legacy }: SampleContents): Damage[] {
  const inRow = (table: typeof entries | typeof legacyPublications, row: object, place: number): Damage[] => {
    const cells = new Map<string, unknown>(Object.entries(row))
    const columns = Object.entries(getTableColumns(table)).slice(1)
    return columns.flatMap(([property, { name, dataType }]) => {
      if (cells.get(property) === null) return []
      const kinds = dataType === 'number' ? (['numbers'] as const) : (['texts'] as const)
      return [...kinds, ...(name === 'sha256' ? (['digests'] as const) : [])].flatMap((kind) =>
        (['strict', 'loose'] as const).flatMap((typing) =>
          Object.entries(IMPOSSIBLE[kind][typing]).map(([what, value]) => {
            const sql = typeof value === 'string' ? value : value(name)
            return damageCell(
              table,
              place,
              name,
              `${what} (${typing})`,
              sql,
              typing === 'loose' ? withoutTypes(table) : [],
            )
          }),
        ),
      )
    })
  }
  return [
    ...inRow(entries, rowAt(rows, ENTRY.previous), ENTRY.previous),
    ...inRow(legacyPublications, legacy[1] ?? {}, 2),
  ]
}

function entryRows(): Damage[] {
  const hour = 3_600_000
  const positions = { first: ENTRY.firstImported, seal: ENTRY.seal, middle: ENTRY.missedGap }
  const pairs = { 'two publications': [7, 8], 'the first two': [1, 2] } as const
  const earlier: Record<string, (row: LedgerRow) => Partial<LedgerRow>> = {
    published_at: ({ publishedAt }) => ({ publishedAt: Number(publishedAt) - hour }),
    recorded_at: ({ recordedAt }) => ({ recordedAt: recordedAt - hour }),
    'published_at and recorded_at': ({ publishedAt, recordedAt }) => ({
      publishedAt: Number(publishedAt) - hour,
      recordedAt: recordedAt - hour,
    }),
  }
  const inserted = (rows: readonly LedgerRow[]): LedgerRow[] => rows.toSpliced(4, 0, gapAfter(rows))
  return [
    ...Object.entries(positions).flatMap(([place, seq]) => [
      damageEntries(`the ${place} one deleted`, ['chain_broken'], (rows) => withoutRow(rows, seq)),
      damageEntries(
        `the ${place} one deleted, the chain recomputed`,
        ['head_mismatch', 'row_tampered'],
        (rows) => rechain(withoutRow(rows, seq)),
      ),
    ]),
    damageEntries('all deleted', ['head_mismatch'], () => []),
    damageEntries('one inserted in the middle', ['chain_broken'], (rows) => renumber(inserted(rows))),
    damageEntries('one inserted in the middle, the chain recomputed', ['head_mismatch'], (rows) =>
      rechain(inserted(rows)),
    ),
    damageEntries('one inserted that does not continue the chain', ['chain_broken'], (rows) => [
      ...rows,
      gapAfter(rows, rowAt(rows, ENTRY.previous).leaf),
    ]),
    damageEntries('two gaps in each other’s place', ['chain_broken'], (rows) =>
      renumber(swapRows(rows, ENTRY.missedGap, ENTRY.spentGap)),
    ),
    damageEntries('one inserted without its leaf', ['row_tampered'], (rows) => [
      ...rows,
      { ...gapAfter(rows), leaf: 'ab'.repeat(32) },
    ]),
    damageEntries('two inserted, chained', ['head_mismatch'], (rows) => {
      const longer = [...rows, gapAfter(rows)]
      return [...longer, reseal({ ...gapAfter(longer), asOfDay: '2026-01-21' })]
    }),
    damageEntries('one inserted whose object is not there', ['object_missing'], (rows, copy) => [
      ...rows,
      publicationAfter(rows, copy, 'cd'.repeat(32)),
    ]),
    damageEntries('a second seal at the end', ['chain_broken'], (rows) => {
      const { legacyRows: count, legacyDigest } = rowAt(rows, ENTRY.seal)
      const last = rowAt(rows, ENTRY.newest)
      const content = { kind: 'legacy-seal', rows: count ?? 0, digest: legacyDigest ?? '' } as const
      return [...rows, sealEntry(content, rows.length + 1, last.recordedAt, last.leaf)]
    }),
    ...Object.entries(pairs).map(([what, [one, other]]) =>
      damageEntries(`${what} in each other’s place`, ['chain_broken'], (rows) =>
        renumber(swapRows(rows, one, other)),
      ),
    ),
    ...Object.entries({ 'two gaps': [5, 6] as const, ...pairs }).map(([what, [one, other]]) =>
      damageEntries(`${what} in each other’s place, the chain recomputed`, ['head_mismatch'], (rows) =>
        rechain(swapRows(rows, one, other)),
      ),
    ),
    ...Object.entries(earlier).flatMap(([what, change]) =>
      [ENTRY.previous, ENTRY.newest].flatMap((seq) => [
        damageEntries(`entry ${seq} back-dated by its ${what}`, ['row_tampered'], (rows) =>
          changeRow(rows, seq, change),
        ),
        damageEntries(
          `entry ${seq} back-dated by its ${what}, its leaf recomputed`,
          ['head_mismatch'],
          (rows) => changeRow(rows, seq, (row) => reseal({ ...row, ...change(row) })),
        ),
        damageEntries(
          `entry ${seq} back-dated by its ${what}, the chain recomputed`,
          ['head_mismatch'],
          (rows) => rechain(changeRow(rows, seq, change)),
        ),
      ]),
    ),
  ]
}

function legacyRows({ legacy: [first, middle, last] }: SampleContents): Damage[] {
  if (!first || !middle || !last) throw new Error('the sample has too few legacy rows')
  const another = (row: LegacyRow): LegacyRow => ({
    ...row,
    position: row.position + 1,
    publicationId: `${row.publicationId}-again`,
  })
  const others: Record<string, readonly LegacyRow[]> = {
    'the first one deleted': [middle, last],
    'the middle one deleted': [first, last],
    'all deleted': [],
    'one inserted': [first, middle, last, another(last)],
    'two in each other’s place': [first, { ...last, position: 2 }, { ...middle, position: 3 }],
    'one replaced by another': [first, middle, another(middle)],
    'one back-dated': [first, middle, { ...last, publishedAt: first.publishedAt - 1 }],
  }
  return [
    ...Object.entries(others).map(([what, rows]) => damageLegacy(what, () => rows)),
    damageLedger('the legacy table dropped', ['row_tampered'], () => ['DROP TABLE legacy_publications']),
  ]
}

/** SQLite's default page size. */
const PAGE_BYTES = 4_096

function ledgerFile(): Damage[] {
  const cells: Record<string, (sample: SampleContents) => string | null | undefined> = {
    'the digest of an entry': ({ rows }) => rowAt(rows, ENTRY.previous).sha256,
    'the reason of a gap': ({ rows }) => rowAt(rows, ENTRY.spentGap).reason,
    'the digest of the seal': ({ rows }) => rowAt(rows, ENTRY.seal).legacyDigest,
    'the leaf of the newest entry': ({ rows }) => rowAt(rows, ENTRY.newest).leaf,
    'the digest of a legacy row': ({ legacy }) => legacy[1]?.sha256,
  }
  const lengths: Record<string, (bytes: number) => number> = {
    'by its last byte': (bytes) => bytes - 1,
    'by its last page': (bytes) => bytes - PAGE_BYTES,
    'to its first page': () => PAGE_BYTES,
    'inside its header': () => 50,
  }
  const statements: Record<string, string> = {
    'a column dropped': 'ALTER TABLE entries DROP COLUMN reason',
    'a column renamed': 'ALTER TABLE entries RENAME COLUMN sha256 TO digest',
  }
  /** Where the page begins that holds the newest entry. */
  const pageIn = (bytes: Buffer, { rows }: SampleContents): number =>
    Math.floor(bytes.lastIndexOf(rowAt(rows, ENTRY.newest).sha256 ?? '') / PAGE_BYTES) * PAGE_BYTES
  const anyOf = ['row_tampered', 'chain_broken', 'head_mismatch'] as const
  return [
    ...Object.entries(cells).flatMap(([what, cell]) =>
      [0x01, 0x80].map((bit) =>
        damageLedgerFile(`bit ${bit} of ${what} flipped`, ['row_tampered'], (bytes, { sample }) => {
          const needle = Buffer.from(cell(sample) ?? '')
          let flipped: Uint8Array = bytes
          // Pages that were split hold a cell twice.
          for (let at = bytes.indexOf(needle); at >= 0; at = bytes.indexOf(needle, at + 1))
            flipped = withFlippedBits(flipped, at + (needle.byteLength >> 1), bit)
          return flipped
        }),
      ),
    ),
    ...Object.entries(lengths).map(([what, length]) =>
      damageLedgerFile(`cut ${what}`, ['row_tampered'], (bytes) =>
        bytes.subarray(0, length(bytes.byteLength)),
      ),
    ),
    damageLedgerFile('the first byte of its header flipped', ['row_tampered'], (bytes) =>
      withFlippedBits(bytes, 0, 1),
    ),
    damageLedgerFile('its page size damaged', ['row_tampered'], (bytes) => withFlippedBits(bytes, 16, 1)),
    damageLedgerFile('filled with something else', ['row_tampered'], (bytes) => Buffer.from(bytes).fill('x')),
    // An empty file is a database without tables: nothing is unreadable, but every head is left over.
    damageLedgerFile('replaced by an empty one', ['head_mismatch'], () => Buffer.alloc(0)),
    damageLedgerFile('a page of entries zeroed', anyOf, (bytes, { sample }) => {
      const page = pageIn(bytes, sample)
      return Buffer.from(bytes).fill(0, page, page + PAGE_BYTES)
    }),
    damageLedgerFile('a page of entries as it once was', anyOf, (bytes, { sample }) => {
      const page = pageIn(bytes, sample)
      const mixed = Buffer.from(bytes)
      mixed.set(sample.olderLedgers.get(ENTRY.previous)?.subarray(page, page + PAGE_BYTES) ?? [], page)
      return mixed
    }),
    ...Object.entries(statements).map(([what, statement]) =>
      damageLedger(`ledger: ${what}`, ['row_tampered'], () => [statement]),
    ),
    damageLedger('ledger: both tables dropped', ['head_mismatch'], () => [
      'DROP TABLE entries',
      'DROP TABLE legacy_publications',
    ]),
  ]
}

function rollBacks(): Damage[] {
  return [
    damage('roll-back of the ledger file by one entry', ['head_mismatch'], (copy) =>
      rollBackLedger(copy, ENTRY.previous),
    ),
    damage('roll-back of the object store by two publications', ['head_mismatch'], (copy) =>
      rollBackObjects(copy, [ENTRY.previous, ENTRY.newest]),
    ),
    damage('roll-back of both stores by two publications', 'kept head', (copy) => {
      rollBackLedger(copy, ENTRY.beforePrevious)
      rollBackObjects(copy, [ENTRY.previous, ENTRY.newest])
    }),
    damage('both stores emptied', 'kept head', ({ ledgerPath, objectsPath }) => {
      overwrite(ledgerPath, '')
      for (const area of ['sha256', 'heads']) rmSync(`${objectsPath}/${area}`, { recursive: true })
    }),
  ]
}

function forgeries(): Damage[] {
  const { newest, previous, missedGap, spentGap, seal } = ENTRY
  type Edit = [
    what: string,
    code: 'identity_mismatch' | 'size_mismatch' | 'row_tampered' | 'chain_broken',
    seq: number,
    change: (row: LedgerRow, rows: readonly LedgerRow[]) => Partial<LedgerRow>,
  ]
  const edits: Edit[] = [
    [
      'an entry back-dated',
      'identity_mismatch',
      newest,
      (row) => ({ publishedAt: Number(row.publishedAt) - 1 }),
    ],
    [
      'an entry with a time that is no date',
      'identity_mismatch',
      newest,
      () => ({ publishedAt: 8_640_000_000_000_001 }),
    ],
    ['an entry of another day', 'identity_mismatch', newest, () => ({ asOfDay: '2026-01-08' })],
    ['an entry of another size', 'size_mismatch', newest, () => ({ byteSize: 1 })],
    [
      'a digest in upper case',
      'row_tampered',
      newest,
      (row) => ({ sha256: row.sha256?.toUpperCase() ?? null }),
    ],
    ['an entry of an unknown kind', 'row_tampered', missedGap, () => ({ kind: 'hole' })],
    ['a gap without a reason', 'row_tampered', missedGap, () => ({ reason: null })],
    ['a gap on a day that is none', 'row_tampered', missedGap, () => ({ asOfDay: '2026-02-30' })],
    [
      'an entry recorded before the one before it',
      'chain_broken',
      newest,
      (_row, rows) => ({ recordedAt: rowAt(rows, previous).recordedAt - 1 }),
    ],
  ]
  const editedLegacy = (changes: Partial<LegacyRow>) => (legacy: readonly LegacyRow[]) =>
    legacy.map((row) => (row.position === 2 ? { ...row, ...changes } : row))
  return [
    ...edits.map(([what, code, seq, change]) =>
      forge(what, [code], ({ rows }) => ({ rows: changeRow(rows, seq, (row) => change(row, rows)) })),
    ),
    forge('a legacy row of another day', ['identity_mismatch'], ({ legacy }) => ({
      legacy: editedLegacy({ asOfDay: '2025-11-11' })(legacy),
    })),
    forge('a legacy row of another size', ['size_mismatch'], ({ legacy }) => ({
      legacy: editedLegacy({ byteSize: 1 })(legacy),
    })),
    forge('a path in a digest column', ['row_tampered'], ({ rows }) => ({
      rows: changeRow(rows, newest, () => ({ sha256: '../../etc/passwd' })),
    })),
    forge('a path in a digest of a legacy row', ['row_tampered'], ({ legacy }) => ({
      legacy: editedLegacy({ sha256: '../../etc/passwd' })(legacy),
    })),
    forge('a second seal', ['chain_broken'], ({ rows }) => ({
      rows: [...rows, { ...rowAt(rows, seal), recordedAt: rowAt(rows, newest).recordedAt }],
    })),
    forgeNewestObject('an object that is no JSON', ['envelope_invalid'], (text) => text.slice(1)),
    forgeNewestObject('an object of another version', ['identity_mismatch'], (text) =>
      text.replace('"schemaVersion":3', '"schemaVersion":2'),
    ),
    forge('a gap given another reason', 'kept head', ({ rows }) => ({
      rows: changeRow(rows, spentGap, () => ({ reason: 'missed', attempts: 0 })),
    })),
    forge('a legacy row and its object taken out', 'kept head', ({ legacy }, copy) => {
      rmSync(objectFile(copy, publicationNamed(copy.sample, legacy.at(-1)?.publicationId)))
      return { legacy: legacy.slice(0, -1) }
    }),
    forgeNewestObject(
      'the newest publication back-dated with its envelope',
      'kept head',
      (text, { publishedAt }) => text.replaceAll(formatInstant(publishedAt), formatInstant(publishedAt - 1)),
    ),
  ]
}
