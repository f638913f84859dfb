import { request } from 'node:http'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, test } from 'vitest'
import { dayOf } from '../../../src/domain/time.ts'
import { rankPeriods } from '../../../src/jobs/snapshot.ts'
import type { TakenSnapshot } from '../../../src/jobs/snapshot.ts'
import { filledFolder, run, serve } from '../../support/dash.ts'
import { storeAt } from '../../adapters/feed/open-feed.ts'
/** Takes a snapshot under a clock that is ahead, and returns its ID. */
async function takeAhead(data: string, aheadMs: number): Promise<string> {
  const { feed, close } = storeAt(pathToFileURL(join(data, 'feed.db')).href)
  const clock = (): number => Date.now() + aheadMs
  const options = { signal: new AbortController().signal, discardLater: false }
  const { snapshotId } = await rankPeriods({ feed, clock }, options)
  close()
  return snapshotId
}

/** Sends a request with another host name than the server's own. */
function askAs(host: string, url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    request(url, { headers: { host } }, (response) => {
      let body = ''
      response.on('data', (chunk: Buffer) => (body += chunk.toString()))
      response.on('end', () => resolve(body))
    })
      .on('error', reject)
      .end()
  })
}

describe('snapshot', () => {
  test('the output of a snapshot is one line, one document, or nothing', async () => {
    const single = await run(['snapshot', '--data-dir', await filledFolder({}, 1)])
    expect(single.stdout).toMatch(/ of 1 event; popular: /)
    const data = await filledFolder()
    const json = await run(['snapshot', '--data-dir', data, '--json'])
    const report = JSON.parse(json.stdout) as TakenSnapshot
    expect([json.code, json.stderr]).toEqual([0, ''])
    expect(report).toMatchObject({ job: 'snapshot', outcome: 'taken', events: 5, removed: 0 })
    expect(report.items.week).toMatchObject({ hackerNews: 5, popular: 5 })
    const line = await run(['snapshot', '--data-dir', data])
    expect(line.stdout).toMatch(
      /^snapshot feed-\S+ of 5 events; popular: trending 5, day \d, week 5, month 5\n$/,
    )
    const quiet = await run(['snapshot', '--data-dir', data, '--quiet'])
    expect(quiet).toEqual({ code: 0, stdout: '', stderr: '' })
  })

  test('a later snapshot ends the command with 1 and a remedy, and is discarded on demand', async () => {
    const data = await filledFolder()
    await takeAhead(data, 86_400_000)
    const refused = await run(['snapshot', '--data-dir', data])
    expect(refused.code).toBe(1)
    expect(refused.stderr).toMatch(
      new RegExp(`^error: the clock says ${dayOf(Date.now())}.*--discard-later\n$`),
    )
    const mended = await run(['snapshot', '--data-dir', data, '--discard-later', '--json'])
    expect([mended.code, JSON.parse(mended.stdout)]).toMatchObject([0, { removed: 1 }])
  })
})

describe('the address in feeds', () => {
  test('feeds name the address of the listener, whatever host a request names, localhost for a wildcard, or DASH_BASE_URL', async () => {
    const data = await filledFolder()
    const { url } = await serve(['--data-dir', data])
    expect(await askAs('evil.example', `${url}/api/rss`)).toContain(`<link>${url}/?sort=trending</link>`)
    expect(await askAs('evil.example', `${url}/api/feed.json`)).not.toContain('evil.example')
    const { port } = new URL((await serve(['--data-dir', data, '--host', '0.0.0.0'])).url)
    const rss = await (await fetch(`http://127.0.0.1:${port}/api/rss`)).text()
    expect(rss).toContain(`<link>http://localhost:${port}/?sort=trending</link>`)
    const env = { DASH_BASE_URL: 'https://dash.example/' }
    const configured = await serve(['--data-dir', data], { env })
    const atom = await (await fetch(`${configured.url}/api/atom?sort=week`)).text()
    expect(atom).toContain('<id>https://dash.example/api/atom?sort=week</id>')
  })
})
