import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { listenLocally, openApp } from '../../support/api-client.ts'
import { run, temporaryFolder } from '../../support/dash.ts'
import { jsonSource, localSource, unreachableUrl } from '../../support/local-source.ts'
import { newsWorkspace } from './news.ts'
import type { YearEnvelope } from '../../../src/domain/year/schema.ts'

const top = (...args: string[]): ReturnType<typeof run> => run(['top', ...args])

interface Top {
  sort: string
  list: string
  publication: { asOfDay: string; sha256: string } | null
  snapshot: { snapshotId: string } | null
  items: { key: string; title: string }[]
}

describe('dash top', () => {
  test('the live feed is printed one item a line with its address, and without control characters', async () => {
    const { folder } = await newsWorkspace()
    const { code, stdout, stderr } = await top('--data-dir', folder)
    expect([code, stderr]).toEqual([0, expect.stringMatching(/^trending, ranked \S+Z\n$/)])
    const [evil, ...others] = stdout.trimEnd().split('\n')
    expect(evil).toMatch(/^1 {2,}60 {2,}3 {2,}1h {2}hn {2,}Evil\\u001b\[2J\\u009b2J\\u202e <img src=x>/)
    // An address that is no web page is replaced by that of the discussion.
    expect(evil).toMatch(/ {2}https:\/\/news\.ycombinator\.com\/item\?id=50$/)
    expect(others).toEqual([
      expect.stringMatching(/lobsters {2}Story 52 {2}https:\/\/example\.org\/52$/),
      expect.stringMatching(/hn {2,}Live story {2}https:\/\/example\.org\/51$/),
    ])
    const hn = JSON.parse((await top('day', '--source', 'hn', '--json', '--data-dir', folder)).stdout) as Top
    expect(hn).toMatchObject({ sort: 'day', list: 'hackerNews', publication: null })
    expect(hn.items.map(({ key }) => key)).toEqual(['hn-50', 'hn-51'])
    const none = await top('--source', 'hype:github', '--data-dir', folder)
    expect(none).toMatchObject({ code: 0, stdout: 'nothing is ranked here\n' })
  })

  test('the Year of a time is the publication that was current then', async () => {
    const { folder } = await newsWorkspace()
    const year = async (...args: string[]): Promise<Top> =>
      JSON.parse((await top('year', '--json', '--data-dir', folder, ...args)).stdout) as Top
    const newest = await year('--limit', '2')
    expect(newest).toMatchObject({ list: 'popular', publication: { asOfDay: '2026-03-04' }, snapshot: null })
    expect(newest.items.map(({ key }) => key)).toEqual(['hn-25', 'hn-1'])
    for (const at of ['2026-03-02', '2026-03-02T00:11:00Z', '2026-03-04T23:59:59.999Z'])
      expect((await year('--at', at)).publication?.asOfDay).toBe('2026-03-01')
    const before = await top('year', '--at', '2026-03-01', '--data-dir', folder)
    expect(before).toMatchObject({ code: 1, stdout: '' })
    expect(before.stderr).toMatch(/^error: no Year was published by 2026-03-01T23:59:59.999Z/)
  })

  test('a damaged publication is refused, and a folder without data is left alone', async () => {
    const { folder, objectsPath } = await newsWorkspace()
    const { publication } = JSON.parse((await top('year', '--json', '--data-dir', folder)).stdout) as Top
    const name = readdirSync(objectsPath, { recursive: true, encoding: 'utf8' }).find((path) =>
      path.includes(publication?.sha256 ?? '-'),
    )
    const path = join(objectsPath, name ?? '')
    rmSync(path)
    writeFileSync(path, '{}')
    expect(await top('year', '--data-dir', folder)).toMatchObject({ code: 74, stdout: '' })
    const cwd = temporaryFolder()
    const empty = await run(['top'], { cwd })
    expect([empty.code, readdirSync(cwd)]).toEqual([74, []])
    expect(empty.stderr).toMatch(/no feed database at .*; read a running server with --url/)
  })
})

describe('dash top --url', () => {
  test('the rankings of another host are those of its data folder', async () => {
    const workspace = await newsWorkspace()
    const { url } = await listenLocally(openApp(workspace))
    for (const args of [['week'], ['year'], ['year', '--at', '2026-03-03']]) {
      const remote = await top(...args, '--json', '--url', `${url}/`)
      expect(remote.code).toBe(0)
      expect(remote).toEqual(await top(...args, '--json', '--data-dir', workspace.folder))
    }
  })

  test('a host that sends other bytes than its index names, or no dash interface, ends with 69', async () => {
    const workspace = await newsWorkspace()
    const app = openApp(workspace)
    const forged = await localSource(async ({ target }, response) => {
      const served = await app.request(`http://dash.test${target}`)
      const text = await served.text()
      response.writeHead(served.status, { etag: served.headers.get('etag') ?? '' })
      response.end(target.includes('sort=year') ? forge(text) : text)
    })
    const page = await localSource((_request, response) => response.end('<html>'))
    const missing = await localSource((_request, response) => response.writeHead(404).end())
    const day = { publicationId: 'x', publishedAt: '2026-03-02T00:00:00.000Z', sha256: '0'.repeat(64) }
    const indexAlone = await localSource((_request, response) =>
      response.end(JSON.stringify({ publications: [{ ...day, asOfDay: '2026-03-01' }] })),
    )
    for (const { url } of [forged, page, missing, indexAlone, { url: await unreachableUrl() }]) {
      const { code, stdout, stderr } = await top('year', '--url', url)
      expect([code, stdout]).toEqual([69, ''])
      expect(stderr).toMatch(/^error: .*\n$/)
      expect(stderr).toContain(url)
    }
    for (const { url } of [page, missing]) expect((await top('--url', url)).code).toBe(69)
  })

  test('a host whose index has the day that is not over is refused', async () => {
    const today = '2026-03-02'
    vi.useFakeTimers({ toFake: ['Date'], now: Date.parse(`${today}T23:00:00Z`) })
    onTestFinished(() => void vi.useRealTimers())
    const publication = { publicationId: 'x', publishedAt: `${today}T01:00:00.000Z`, sha256: '0'.repeat(64) }
    const { url } = await jsonSource({ publications: [{ ...publication, asOfDay: today }] })
    const { code, stderr } = await top('year', '--url', url)
    expect([code, stderr]).toEqual([
      69,
      `error: the host ${url} serves a history index with the impossible day ${today}; check --url\n`,
    ])
  })
})

function forge(text: string): string {
  const envelope = JSON.parse(text) as YearEnvelope
  const [first] = envelope.feed.popular
  if (first) first.title = 'Forged'
  return JSON.stringify(envelope)
}
