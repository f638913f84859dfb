import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { lastCompleteDay } from '../../src/domain/year/ledger.ts'
import type { PublishReport } from '../../src/jobs/publish-report.ts'
import { chatEvents as askAgent, chatBody, textOf } from '../support/agent.ts'
import { dash, filledFolder, run, serve, startDash, temporaryFolder } from '../support/dash.ts'

test('the built program prints its version, ends with 64 for an invalid command line, and without an error when its output is closed', async () => {
  expect((await dash(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
  const { code, stdout, stderr } = await dash(['serv'])
  expect([code, stdout, stderr]).toEqual([64, '', expect.stringContaining('Did you mean serve')])
  const { child, output, end } = startDash(['--help'])
  child.stdout?.destroy()
  expect([await end(), output.stderr]).toEqual([0, ''])
})

test('a result that a full disk does not take ends with 74 and the reason', async () => {
  const wrapper = ['sh', '-c', 'exec "$@" > /dev/full', 'sh']
  const { code, stderr } = await dash(['--version'], { wrapper })
  expect([code, stderr]).toEqual([
    74,
    expect.stringMatching(/^error: the result cannot be written .*ENOSPC.*\n$/),
  ])
})

test('a disk that fails under a database is reported with the name of the database', async () => {
  const data = await filledFolder()
  const wrapper = ['sh', '-c', 'ulimit -f 10 && exec "$@"', 'sh']
  const { code, stderr } = await dash(['snapshot', '--data-dir', data], { wrapper })
  const error = `error: the database ${join(data, 'feed.db')} failed (SQLITE_IOERR: disk I/O error); check its disk\n`
  expect([code, stderr]).toEqual([74, error])
})

test('a command in a folder that was removed says so', async () => {
  const wrapper = ['sh', '-c', 'mkdir x && cd x && rmdir ../x && exec "$@"', 'sh']
  const { code, stdout, stderr } = await dash(['top', '--json'], { cwd: temporaryFolder(), wrapper })
  const error = 'the current folder was removed; change to another one'
  expect([code, JSON.parse(stdout), stderr]).toEqual([64, { error, exitCode: 64 }, `error: ${error}\n`])
})

test('a server serves publications, logs its requests, ends on SIGTERM, and exits with 0', async () => {
  const data = ['--data-dir', await filledFolder()]
  const { sha256 } = JSON.parse((await run(['publish-year', '--json', ...data])).stdout) as PublishReport
  const { url, output, end } = await serve(data)
  const response = await fetch(`${url}/api/feed/history?sort=year`)
  expect([response.status, response.headers.get('etag')]).toEqual([200, `"${sha256}"`])
  expect((await fetch(`${url}/readyz`)).status).toBe(200)
  expect(await end('SIGTERM')).toBe(0)
  const line = output.stderr.split('\n').find((text) => text.includes('/api/feed/history')) ?? '{}'
  const requestId = response.headers.get('x-request-id')
  const logged = { method: 'GET', path: '/api/feed/history', status: 200, requestId }
  expect(JSON.parse(line)).toMatchObject(logged)
  expect(output.stderr).not.toMatch(/sort=year|metrics/)
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
