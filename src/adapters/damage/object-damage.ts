import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import type { Mutation } from '../../domain/ports.ts'
import { objectPath } from '../../domain/year/finding.ts'
import {
  damage,
  ENTRY,
  objectFile,
  overwrite,
  publicationAt,
  publicationNamed,
  withFlippedBits,
} from './damage.ts'
import type { Copy, Damage, SampleContents } from './damage.ts'
import { withText } from './publications.ts'
import type { Publication } from './publications.ts'

/** Damage to the objects, by a broken disk or by somebody who has the store alone. */
export function objectDamage(sample: SampleContents): Damage[] {
  const newest = publicationAt({ sample }, ENTRY.newest)
  const legacy = publicationNamed(sample, sample.legacy[0]?.publicationId)
  return [
    ...[...sample.publications.values()].flatMap(bitFlips),
    ...[newest, legacy].flatMap(otherBytes),
    ...[newest, legacy].flatMap(otherThings),
    ...exchanges(),
    ...extras(),
  ]
}

function bitFlips(publication: Publication): Damage[] {
  const { byteLength } = publication.bytes
  const places = { first: 0, middle: byteLength >> 1, last: byteLength - 1 }
  return Object.entries(places).map(([place, position]) =>
    ofObject(publication, `a bit of its ${place} byte flipped`, ['digest_mismatch'], (bytes) =>
      withFlippedBits(bytes, position, 1),
    ),
  )
}

function otherBytes(publication: Publication): Damage[] {
  const appended = (bytes: Uint8Array): Uint8Array => Buffer.concat([bytes, Buffer.from('\n')])
  return [
    ofObject(publication, 'cut by one byte', ['size_mismatch'], (bytes) => bytes.subarray(0, -1)),
    ofObject(publication, 'cut to nothing', ['size_mismatch'], () => new Uint8Array()),
    ofObject(publication, 'a byte appended', ['size_mismatch'], appended),
    ofObject(publication, 'its second half zeroed', ['digest_mismatch'], (bytes) =>
      Uint8Array.from(bytes).fill(0, bytes.byteLength >> 1),
    ),
    ofObject(
      publication,
      'another valid envelope of the same size',
      ['digest_mismatch'],
      () => withText(publication, (text) => text.replace(/"title":"./, '"title":"X')).bytes,
    ),
  ]
}

/** Things that are no regular file; a pipe must not be waited for. */
function otherThings(publication: Publication): Damage[] {
  const things: Record<string, (path: string) => void | Promise<void>> = {
    'a folder': (path) => mkdirSync(path),
    'a symbolic link to its own bytes': (path) => {
      overwrite(`${path}.moved`, publication.bytes)
      symlinkSync(`${path}.moved`, path)
    },
    'a symbolic link to nothing': (path) => symlinkSync(`${path}.nowhere`, path),
    'a named pipe': (path) => void execFileSync('mkfifo', [path]),
    'a socket': placeSocket,
  }
  return [
    damage(`object of ${nameOf(publication)}: gone`, ['object_missing'], (copy) =>
      rmSync(objectFile(copy, publication)),
    ),
    ...Object.entries(things).map(([thing, place]) =>
      damage(`object of ${nameOf(publication)}: ${thing} in its place`, ['object_unreadable'], (copy) => {
        const path = objectFile(copy, publication)
        rmSync(path)
        return place(path)
      }),
    ),
    damage(
      `object of ${nameOf(publication)}: a file in the place of its folder`,
      ['object_unreadable'],
      (copy) => overwrite(dirname(objectFile(copy, publication)), 'a file'),
    ),
  ]
}

function exchanges(): Damage[] {
  return [
    damage('objects: two valid ones swapped', ['digest_mismatch'], (copy) => {
      const [one, other] = [publicationAt(copy, ENTRY.previous), publicationAt(copy, ENTRY.newest)]
      overwrite(objectFile(copy, one), other.bytes)
      overwrite(objectFile(copy, other), one.bytes)
    }),
    damage('objects: the newest replaced by the one before', ['digest_mismatch'], (copy) =>
      overwrite(
        objectFile(copy, publicationAt(copy, ENTRY.newest)),
        publicationAt(copy, ENTRY.previous).bytes,
      ),
    ),
    damage('objects: all gone', ['object_missing'], ({ objectsPath }) =>
      rmSync(join(objectsPath, 'sha256'), { recursive: true }),
    ),
    damage('objects: one moved to another name', ['object_missing'], (copy) => {
      const path = objectFile(copy, publicationAt(copy, ENTRY.newest))
      renameSync(path, `${path}.moved`)
    }),
  ]
}

/** What no entry names is a note: a crash before the commit leaves it too. */
function extras(): Damage[] {
  const places: Record<string, string> = {
    'an object no entry names': objectPath('ab'.repeat(32)),
    'a file whose name is no digest': 'sha256/zz/readme',
  }
  return Object.entries(places).map(([what, place]) => ({
    ...damage(`objects: ${what}`, ['orphan_object'], ({ objectsPath }) => {
      mkdirSync(dirname(join(objectsPath, place)), { recursive: true })
      overwrite(join(objectsPath, place), 'nobody asked for this')
    }),
    sound: true,
  }))
}

function ofObject(
  publication: Publication,
  what: string,
  expects: Mutation['expects'],
  change: (bytes: Uint8Array) => Uint8Array,
): Damage {
  return damage(`object of ${nameOf(publication)}: ${what}`, expects, (copy: Copy) => {
    const path = objectFile(copy, publication)
    overwrite(path, change(readFileSync(path)))
  })
}

function nameOf({ manifest }: Publication): string {
  return manifest.publicationId
}

/** A socket stays in its place once it was moved there from where its server made it. */
async function placeSocket(path: string): Promise<void> {
  const server = createServer()
  const first = join(dirname(path), 's')
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(first, resolve))
  renameSync(first, path)
  await new Promise((resolve) => server.close(resolve))
}
