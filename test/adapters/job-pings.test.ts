import { describe, expect, onTestFinished, test } from 'vitest'
import { openJobPings } from '../../src/adapters/job-pings.ts'
import type { JobMonitor } from '../../src/adapters/job-pings.ts'
import { startPingService } from '../support/local-source.ts'

function watchAt(url: string, pingMs = 60_000): JobMonitor {
  const watch = openJobPings({ url, timeoutMs: pingMs })
  onTestFinished(() => watch.close())
  return watch
}

describe('a job monitor', () => {
  test('the monitor receives the start, the end with exit status and message, and the note of a skipped run', async () => {
    const { url, pings } = await startPingService()
    const watch = watchAt(`${url}/ping/0c9a/`)
    await watch.started('collect')
    await watch.ended('collect', 69, 'lobsters failed: é')
    await watch.notify('collect', 'another works')
    expect(pings).toEqual([
      { what: 'POST /ping/0c9a/start', body: '' },
      { what: 'POST /ping/0c9a/69', body: 'lobsters failed: é' },
      { what: 'POST /ping/0c9a/log', body: 'another works' },
    ])
  })

  test("the monitor has one check per job if the URL names the job, and the URL's query is kept", async () => {
    const { url, pings } = await startPingService()
    const watch = watchAt(`${url}/KEY/dash-{job}?create=1`)
    await watch.ended('publish-year', 0, '')
    expect(pings).toMatchObject([{ what: 'POST /KEY/dash-publish-year/0?create=1' }])
  })

  test('the monitor receives the end of a message that is too long, in whole characters', async () => {
    const { url, pings } = await startPingService()
    await watchAt(url).ended('collect', 0, `${'é'.repeat(20_000)}the end`)
    expect(pings[0]?.body).toMatch(/^é{4000,}the end$/)
    expect(Buffer.byteLength(pings[0]?.body ?? '')).toBeLessThanOrEqual(10_000)
  })

  test('the monitor receives the end once more after a failure, and no third time', async () => {
    const flaky = await startPingService((response, count) =>
      response.writeHead(count === 1 ? 502 : 200).end(),
    )
    await watchAt(flaky.url).ended('collect', 0, 'done')
    expect(flaky.pings.map(({ what }) => what)).toEqual(['POST /0', 'POST /0'])
    const down = await startPingService((response) => response.writeHead(404).end())
    await expect(watchAt(down.url).ended('collect', 0, 'done')).rejects.toThrow('responded with 404')
    expect(down.pings).toHaveLength(2)
  })

  test('a monitor that never responds is given up', async () => {
    const { url, pings } = await startPingService(() => undefined)
    await expect(watchAt(url, 200).started('collect')).rejects.toThrow('no complete response within 200 ms')
    expect(pings).toHaveLength(1)
  })
})
