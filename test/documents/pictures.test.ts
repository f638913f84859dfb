import { readFileSync, readdirSync, statSync } from 'node:fs'
import { posix } from 'node:path'
import { expect, test } from 'vitest'
import { sha256Hex } from '../../src/domain/digest.ts'
import { openApp } from '../support/api-client.ts'
import { openWorkspace } from '../support/workspace.ts'

const FOLDER = 'docs/pictures'
const MAX_BYTES = 2 * 1024 * 1024
const [SHORTEST_ALT, DOCUMENTS] = [20, ['README.md', 'docs/tour.md', 'docs/embedding.md']]

/** The pictures of a document: path below the root of the project, and description. */
function picturesOf(name: string): { file: string; alt: string }[] {
  const text = readFileSync(name, 'utf8')
  return [...text.matchAll(/!\[([^\]]*)\]\(([^)#]*\.(?:png|gif))[^)]*\)/g)].map(
    ([, alt = '', link = '']) => ({
      file: posix.join(posix.dirname(name), link),
      alt,
    }),
  )
}

test('every picture stands in a document with a description, and all together are small', () => {
  const shown = DOCUMENTS.flatMap(picturesOf)
  const files = readdirSync(FOLDER).map((name) => `${FOLDER}/${name}`)
  expect(new Set(shown.map(({ file }) => file))).toEqual(new Set(files))
  for (const { file, alt } of shown) expect([file, alt.length > SHORTEST_ALT]).toEqual([file, true])
  expect(picturesOf('docs/tour.md').filter(({ file }) => file.endsWith('.png'))).toHaveLength(6)
  expect(files.reduce((sum, file) => sum + statSync(file).size, 0)).toBeLessThan(MAX_BYTES)
})

test('the server shows the pictures in the pages of the documents', async () => {
  const app = openApp(await openWorkspace())
  for (const [page, picture, type] of [
    ['/docs/tour', '/docs/pictures/slider.gif', 'image/gif'],
    ['/docs/readme', '/docs/pictures/home-dark.png', 'image/png'],
  ] as const) {
    expect(await (await app.request(page)).text()).toContain(`<img src="${picture}"`)
    const response = await app.request(picture)
    expect([response.status, response.headers.get('content-type')]).toEqual([200, type])
    const shown = new Uint8Array(await response.arrayBuffer())
    expect(sha256Hex(shown)).toBe(sha256Hex(readFileSync(picture.slice(1))))
  }
})
