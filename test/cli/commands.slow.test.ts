import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { lastCompleteDay } from '../../src/domain/year/ledger.ts'
import type { PublishReport } from '../../src/jobs/publish-report.ts'
import { chatEvents as askAgent, chatBody, textOf } from '../support/agent.ts'
import { dash, filledFolder, run, serve, startDash } from '../support/dash.ts'

async function publish(data: string) {
  const finished = await run(['publish-year', '--data-dir', data, '--json', '--once'])
  return { ...finished, report: JSON.parse(finished.stdout) as PublishReport }
}

describe('the built program', () => {
  test('the program prints its version, and an invalid command line ends with 64', async () => {
    expect((await dash(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
    const { code, stdout, stderr } = await dash(['serv'])
    expect([code, stdout, stderr]).toEqual([64, '', expect.stringContaining('Did you mean serve')])
  })

  test('the program ends without an error when its output is closed', async () => {
    const { child, output, end } = startDash(['--help'])
    child.stdout?.destroy()
    expect([await end(), output.stderr]).toEqual([0, ''])
  })
})

describe('serve', () => {
  test('a server serves publications, ends on SIGTERM, and exits with 0', async () => {
    const data = await filledFolder()
    const { report } = await publish(data)
    const { url, output, end } = await serve(['--data-dir', data])
    const response = await fetch(`${url}/api/feed/history?sort=year`)
    expect([response.status, response.headers.get('etag')]).toEqual([200, `"${report.sha256}"`])
    expect((await fetch(`${url}/readyz`)).status).toBe(200)
    expect(await end('SIGTERM')).toBe(0)
    const line = JSON.parse(
      output.stderr.split('\n').find((text) => text.includes('/api/feed/history')) ?? '{}',
    ) as object
    expect(line).toMatchObject({
      method: 'GET',
      path: '/api/feed/history',
      status: 200,
      requestId: response.headers.get('x-request-id'),
    })
    expect(output.stderr).not.toMatch(/sort=year|metrics/)
  })
})

test('a demo becomes ready, is labelled as a demo, and deletes its folder', async () => {
  const { url, output, end } = await serve(['--demo'])
  const folder = /filling (\S+) with/.exec(output.stderr)?.[1] ?? ''
  expect(output.stdout).toContain('DEMO')
  expect(existsSync(join(folder, 'ledger.db'))).toBe(true)
  const response = await fetch(`${url}/api/feed/history?sort=year`)
  const envelope = (await response.json()) as { feed: { popular: unknown[] } }
  expect(response.headers.get('x-dash-demo')).toBe('true')
  expect(envelope).toMatchObject({ asOfDay: lastCompleteDay(Date.now()), coverage: { complete: true } })
  expect(envelope.feed.popular).toHaveLength(100)
  for (const sort of ['trending', 'week', 'month']) {
    const live = (await (await fetch(`${url}/api/feed?sort=${sort}`)).json()) as {
      popular: unknown[]
      hypeReplicate: unknown[]
    }
    expect(live.hypeReplicate).not.toEqual([])
    expect(live.popular.length).toBeGreaterThan(20)
  }
  expect(await (await fetch(`${url}/api/rss`)).text()).toContain('<title>DEMO: dash: trending now</title>')
  const events = await askAgent({ url }, chatBody('What is trending?'))
  expect(textOf(events)).toMatch(/^_Demo.*\[[^\]]+\]\(https?:/s)
  const status = (await (await fetch(`${url}/api/status/free-llm`)).json()) as object
  expect(status).toMatchObject({ ok: true, primary: 'orchard/quince-large:free' })
  const moved = (await (await fetch(`${url}/api/trend?key=hype-github-karpathy/nanochat`)).json()) as {
    days: { points: number }[]
  }
  expect(new Set(moved.days.map(({ points }) => points)).size).toBeGreaterThan(5)
  expect(await end('SIGTERM')).toBe(0)
  expect(existsSync(folder)).toBe(false)
})
