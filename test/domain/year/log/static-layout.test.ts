import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  staticAssetPath,
  staticFileHeaders,
  staticHeadersText,
  staticObjectPath,
  staticPagePath,
  staticTilePath,
  staticTiles,
} from '../../../../src/domain/year/log/static-layout.ts'
import { tilesOfSize } from '../../../../src/domain/year/log/tiles.ts'

const pathsOf = (size: number): string[] => staticTiles(size).map(staticTilePath).sort()

describe('tiles and bundles of an export', () => {
  test('an export of 3 entries holds the files of every size', () => {
    expect(pathsOf(3)).toEqual(
      ['0/000.p/1', '0/000.p/2', '0/000.p/3', 'entries/000.p/1', 'entries/000.p/2', 'entries/000.p/3'].map(
        (name) => `tlog/year/tile/${name}`,
      ),
    )
    expect(pathsOf(0)).toEqual([])
  })

  test('an export holds every file of the last 256 sizes, and each file once', () => {
    const sizes = fc.integer({ min: 1, max: 70_000 })
    fc.assert(
      fc.property(sizes, fc.integer({ min: 0, max: 255 }), (size, before) => {
        const paths = pathsOf(size)
        expect(new Set(paths).size).toBe(paths.length)
        expect(paths).toEqual(
          expect.arrayContaining(tilesOfSize(Math.max(1, size - before)).map(staticTilePath)),
        )
      }),
      { numRuns: 20 },
    )
  })

  test('an export holds tiles above level 0 of every size, and no older partial tiles of level 0', () => {
    const paths = pathsOf(1_000)
    for (const width of [1, 2, 3]) expect(paths).toContain(`tlog/year/tile/1/000.p/${width}`)
    expect(paths).toContain('tlog/year/tile/0/002.p/233')
    expect(paths).not.toContain('tlog/year/tile/0/002.p/232')
    expect(paths).not.toContain('tlog/year/tile/entries/002.p/232')
  })
})

describe('headers of an export', () => {
  test('files that never change are immutable, all others are revalidated', () => {
    const cacheOf = (path: string): string => staticFileHeaders(path)['cache-control']
    for (const path of [staticObjectPath('ab'.repeat(32)), ...pathsOf(300), 'ledger/legacy.ndjson'])
      expect(cacheOf(path)).toBe('public, max-age=31536000, immutable')
    expect(staticFileHeaders(staticAssetPath('0f', 'page.css'))).toEqual({
      'content-type': 'text/css; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
    })
    for (const path of [
      'tlog/year/policy',
      'index.json',
      '_headers',
      'index.html',
      'atom.xml',
      staticPagePath('2026-11-25', 2),
    ])
      expect(cacheOf(path)).toBe('public, max-age=60')
    expect(cacheOf('tlog/year/checkpoint')).toBe('public, max-age=5')
    expect(() => staticFileHeaders('elsewhere')).toThrow(RangeError)
  })

  test('the headers file has one rule for every kind of file', () => {
    const text = staticHeadersText()
    expect(text).toContain(
      '/tlog/year/checkpoint\n  Content-Type: text/plain; charset=utf-8\n  Cache-Control: public, max-age=5\n',
    )
    const paths =
      '/* /tlog/year/checkpoint /tlog/year/policy /tlog/year/tile/* /objects/* /ledger/legacy.ndjson /index.json /index.html /days.html /404.html /year/* /atom.xml /rss.xml /feed.json /assets/*'
    expect(text.match(/^\/.*$/gm)?.join(' ')).toBe(paths)
  })
})
