import { mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { formatHead } from '../../domain/year/head-file.ts'
import type { Head } from '../../domain/year/ledger.ts'
import { damage, ENTRY, headFile, overwrite, rowAt, withFlippedBits } from './damage.ts'
import type { Copy, Damage } from './damage.ts'

/** Damage to the heads. That the newest alone is gone is none: a crash after a commit leaves it so. */
export function headDamage(): Damage[] {
  return [...losses(), ...edits()]
}

function losses(): Damage[] {
  const gone: Record<string, readonly number[]> = {
    'a middle one gone': [ENTRY.missedGap],
    'that of the founding gone': [ENTRY.lastImported],
    'that of the seal gone': [ENTRY.seal],
    'the two newest gone': [ENTRY.previous, ENTRY.newest],
    'all but the newest gone': [2, 3, 4, 5, 6, 7, 8],
  }
  return [
    ...Object.entries(gone).map(([what, seqs]) =>
      damage(`heads: ${what}`, ['head_mismatch'], (copy) => {
        for (const seq of seqs) rmSync(headFile(copy, seq))
      }),
    ),
    damage('heads: all gone', ['head_mismatch'], ({ objectsPath }) =>
      rmSync(join(objectsPath, 'heads'), { recursive: true }),
    ),
  ]
}

function edits(): Damage[] {
  const contents: Record<string, (head: Head, copy: Copy) => string | Uint8Array> = {
    'the leaf edited': (head) =>
      formatHead({ ...head, leaf: `${head.leaf.slice(0, -1)}${otherDigit(head)}` }),
    'the leaf of the entry before': (head, { sample }) =>
      formatHead({ ...head, leaf: rowAt(sample.rows, head.seq - 1).leaf }),
    'the number of another entry': (head) => formatHead({ ...head, seq: head.seq - 1 }),
    'the leaf in upper case': (head) => formatHead({ ...head, leaf: head.leaf.toUpperCase() }),
    'no JSON': () => 'seq 9',
    'not UTF-8': (head) => withFlippedBits(new TextEncoder().encode(formatHead(head)), 40, 0x80),
    cut: (head) => formatHead(head).slice(0, -2),
    'a member too many': (head) => formatHead(head).replace('{', '{"more":1,'),
    'no time': (head) => formatHead(head).replace(/"time":"[^"]*"/, '"time":"yesterday"'),
    empty: () => '',
  }
  return [
    ...['newest' as const, 'previous' as const].flatMap((which) =>
      Object.entries(contents).map(([what, content]) =>
        damage(`heads: the ${which} edited: ${what}`, ['head_mismatch'], (copy) =>
          overwrite(headFile(copy, ENTRY[which]), content(headAt(copy, ENTRY[which]), copy)),
        ),
      ),
    ),
    ...(['newest', 'previous'] as const).map((which) =>
      damage(`heads: a folder in the place of the ${which}`, ['head_mismatch'], (copy) => {
        rmSync(headFile(copy, ENTRY[which]))
        mkdirSync(headFile(copy, ENTRY[which]))
      }),
    ),
    damage('heads: a link in the place of one', ['head_mismatch'], (copy) => {
      const path = headFile(copy, ENTRY.previous)
      overwrite(join(copy.folder, 'moved-head'), formatHead(headAt(copy, ENTRY.previous)))
      rmSync(path)
      symlinkSync(join(copy.folder, 'moved-head'), path)
    }),
    damage('heads: two swapped', ['head_mismatch'], (copy) => {
      overwrite(headFile(copy, ENTRY.previous), formatHead(headAt(copy, ENTRY.newest)))
      overwrite(headFile(copy, ENTRY.newest), formatHead(headAt(copy, ENTRY.previous)))
    }),
    damage('heads: one for an entry that is not there', ['head_mismatch'], (copy) => {
      const seq = ENTRY.newest + 1
      overwrite(headFile(copy, seq), formatHead({ ...headAt(copy, ENTRY.newest), seq }))
    }),
    damage('heads: one of entry 1 with another leaf', ['head_mismatch'], (copy) =>
      overwrite(headFile(copy, 1), formatHead({ ...headAt(copy, ENTRY.newest), seq: 1 })),
    ),
    damage('heads: a file with another name among them', ['head_mismatch'], (copy) =>
      overwrite(join(copy.objectsPath, 'heads', 'newest'), formatHead(headAt(copy, ENTRY.newest))),
    ),
    damage('heads: a number written another way', ['head_mismatch'], (copy) =>
      overwrite(join(copy.objectsPath, 'heads', '09'), formatHead(headAt(copy, ENTRY.newest))),
    ),
  ]
}

function headAt({ sample }: Pick<Copy, 'sample'>, seq: number): Head {
  const head = sample.heads.find((each) => each.seq === seq)
  if (!head) throw new Error(`the sample has no head ${seq}`)
  return head
}

function otherDigit({ leaf }: Head): string {
  return leaf.endsWith('0') ? '1' : '0'
}
