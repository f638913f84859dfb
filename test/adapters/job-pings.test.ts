import { describe, expect, onTestFinished, test } from 'vitest'
import { openJobPings } from '../../src/adapters/job-pings.ts'
import type { JobMonitor } from '../../src/domain/ports.ts'
import { startPingService } from '../support/local-source.ts'

function watchAt(url: string, pingMs = 60_000): JobMonitor {
  const watch = openJobPings({ url, pingMs })
  onTestFinished(() => watch.close())
  return watch
}

describe('a service that watches jobs', () => {
  test('is told of the start, of the end with its exit status and what was said, and of a run that did nothing', async () => {
    const { url, pings } = await startPingService()
    const watch = watchAt(`${url}/ping/0c9a/`)
    await watch.started('collect')
    await watch.ended('collect', 69, 'lobsters failed: é')
    await watch.notify('collect', 'another works')
    expect(pings).toEqual([
      { what: 'POST /ping/0c9a/start', said: '' },
      { what: 'POST /ping/0c9a/69', said: 'lobsters failed: é' },
      { what: 'POST /ping/0c9a/log', said: 'another works' },
    ])
  })

  test('has a check for each job where the address says so, and its options stay behind the path', async () => {
    const { url, pings } = await startPingService()
    const watch = watchAt(`${url}/KEY/dash-{job}?create=1`)
    await watch.ended('publish-year', 0, '')
    expect(pings).toMatchObject([{ what: 'POST /KEY/dash-publish-year/0?create=1' }])
  })

  test('gets the end of a message that is too long, in whole characters', async () => {
    const { url, pings } = await startPingService()
    await watchAt(url).ended('collect', 0, `${'é'.repeat(20_000)}the end`)
    expect(pings[0]?.said).toMatch(/^é{4000,}the end$/)
    expect(Buffer.byteLength(pings[0]?.said ?? '')).toBeLessThanOrEqual(10_000)
  })

  test('is told the end once more when it did not take it, and no oftener', async () => {
    const flaky = await startPingService((response, count) =>
      response.writeHead(count === 1 ? 502 : 200).end(),
    )
    await watchAt(flaky.url).ended('collect', 0, 'done')
    expect(flaky.pings.map(({ what }) => what)).toEqual(['POST /0', 'POST /0'])
    const down = await startPingService((response) => response.writeHead(404).end())
    await expect(watchAt(down.url).ended('collect', 0, 'done')).rejects.toThrow('it answered 404')
    expect(down.pings).toHaveLength(2)
  })

  test('is not followed to another place', async () => {
    const elsewhere = await startPingService()
    const moved = await startPingService((response) =>
      response.writeHead(302, { location: `${elsewhere.url}/start` }).end(),
    )
    await expect(watchAt(moved.url).started('collect')).rejects.toThrow('it answered 302')
    expect(elsewhere.pings).toEqual([])
  })

  test('that never answers is given up', async () => {
    const { url, pings } = await startPingService(() => undefined)
    await expect(watchAt(url, 200).started('collect')).rejects.toThrow('no whole answer within 200 ms')
    expect(pings).toHaveLength(1)
  })
})
