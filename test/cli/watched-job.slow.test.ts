import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, test } from 'vitest'
import { libsqlJobLog } from '../../src/adapters/state/job-stores.ts'
import { openState } from '../adapters/state/open-chat.ts'
import { dash, filledFolder, metricsUrlOf, run, serve, startDash } from '../support/dash.ts'
import { freePort, localSource, startPingService } from '../support/local-source.ts'

const UNVOUCHED = { titleProvenance: undefined }

const whats = (pings: readonly { what: string }[]): string[] => pings.map(({ what }) => what)

describe('a job monitor', () => {
  const DOWN = { DASH_HN_URL: 'http://127.0.0.1:1/v0' }

  test('a monitor gets start and end of each job under its name, with the output of the command', async () => {
    const data = await filledFolder()
    const { url, pings } = await startPingService()
    const env = { DASH_HEALTHCHECK_PING_URL: `${url}/key/dash-{job}` }
    expect((await run(['snapshot', '--data-dir', data], { env })).code).toBe(0)
    const published = await run(['publish-year', '--data-dir', data], { env })
    expect(published).toMatchObject({ code: 0 })
    const jobs = ['snapshot', 'publish-year'].flatMap((job) => [`${job}/start`, `${job}/0`])
    expect(whats(pings)).toEqual(jobs.map((job) => `POST /key/dash-${job}`))
    expect(`${pings[3]?.body}\n`).toBe(published.stdout)
  })

  test('a monitor gets nothing of a dry run, and a failed job or an invalid command line with its exit code and error, under --quiet and --json too', async () => {
    const data = ['--data-dir', await filledFolder(UNVOUCHED)]
    const { url, pings } = await startPingService()
    const env = { ...DOWN, DASH_HEALTHCHECK_PING_URL: url }
    expect((await run(['publish-year', '--dry-run', ...data], { env })).code).toBe(69)
    expect(pings).toEqual([])
    expect((await run(['publish-year', '--once', '--quiet', '--json', ...data], { env })).code).toBe(69)
    expect((await run(['publish-year', '--retry-delay', 'soon', ...data], { env })).code).toBe(64)
    expect(whats(pings)).toEqual(['POST /start', 'POST /69', 'POST /start', 'POST /64'])
    expect(pings[1]?.body).toMatch(/^error: .*\n.* was not published$/)
  })

  test('a monitor gets the signal that ended a job', async () => {
    const data = await filledFolder(UNVOUCHED)
    const { url, pings } = await startPingService()
    const env = { ...DOWN, DASH_HEALTHCHECK_PING_URL: url }
    const { until, end, output } = startDash(['publish-year', '--data-dir', data, '--json'], { env })
    await until('stderr', 'next attempt in 60 s')
    expect(await end('SIGINT')).toBe(130)
    expect(JSON.parse(output.stdout)).toMatchObject({ outcome: 'failed', attempt: 1 })
    expect(whats(pings)).toEqual(['POST /start', 'POST /130'])
  })

  test('a run that could not take the lease sends a log line, and no end, to a monitor, and leaves no record', async () => {
    const { url, pings } = await startPingService()
    let onRequest: (unanswered: ServerResponse) => void = () => undefined
    const requested = new Promise<ServerResponse>((resolve) => (onRequest = resolve))
    const source = await localSource((_request, response) => onRequest(response))
    const data = await filledFolder(UNVOUCHED)
    const jobs = libsqlJobLog(openState(pathToFileURL(join(data, 'state.db')).href))
    expect(await jobs.states()).toEqual([])
    const first = run(['publish-year', '--once', '--data-dir', data], { env: { DASH_HN_URL: source.url } })
    const unanswered = await requested
    const env = { DASH_HEALTHCHECK_PING_URL: url }
    expect((await dash(['publish-year', '--data-dir', data], { env })).code).toBe(75)
    expect(whats(pings)).toEqual(['POST /start', 'POST /log'])
    expect(pings[1]?.body).toContain('has been writing to the ledger since')
    expect(await jobs.states()).toEqual([])
    unanswered.destroy()
    expect((await first).code).toBe(69)
    expect(await jobs.states()).toMatchObject([{ job: 'publish-year', exitCode: 69 }])
  })

  test('an unreachable monitor fails nothing, and its address is not shown', async () => {
    const data = await filledFolder()
    const port = await freePort()
    const env = { DASH_HEALTHCHECK_PING_URL: `http://127.0.0.1:${port}/secret-key` }
    const { code, stdout, stderr } = await run(['publish-year', '--data-dir', data], { env })
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^published /)])
    expect(stderr).toContain(`the ping to 127.0.0.1:${port} (DASH_HEALTHCHECK_PING_URL) failed: `)
    expect(stderr).not.toContain('secret-key')
    expect((await run(['publish-year', '--quiet', '--data-dir', data], { env })).stderr).toBe('')
  })
})

describe('metrics of a server', () => {
  test('metrics report publications, jobs and audits of other processes', async () => {
    const data = await filledFolder()
    const server = await serve(['--data-dir', data], { env: { DASH_METRICS_ADDRESS: '127.0.0.1:0' } })
    const metrics = await metricsUrlOf(server)
    await run(['publish-year', '--data-dir', data])
    await run(['collect', '--source', 'lobsters', '--data-dir', data], {
      env: { DASH_LOBSTERS_URL: 'http://127.0.0.1:1' },
    })
    await dash(['verify-archive', '--data-dir', data])
    const text = await (await fetch(metrics)).text()
    expect(text).toContain('dash_publications 1\n')
    expect(text).toContain('dash_audit_ok 1\n')
    expect(text).toContain('dash_job_last_exit_code{command="publish-year"} 0\n')
    expect(text).toContain('dash_job_last_exit_code{command="collect"} 69\n')
    expect(text).toContain('dash_job_last_success_timestamp_seconds{command="collect"} 0\n')
    expect(text).not.toMatch(/dash_scrape_source_up\{[^}]*\} 0/)
    expect((await fetch(`${server.url}/metrics`)).status).toBe(404)
    expect(await server.end('SIGTERM')).toBe(0)
    await expect(fetch(metrics)).rejects.toThrow('fetch failed')
  })
})
