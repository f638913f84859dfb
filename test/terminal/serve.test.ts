import { expect, test } from 'vitest'
import { temporaryFolder } from '../support/dash.ts'
import { openTerminal } from './terminal.ts'

test('a server on a terminal logs requests as readable lines under --verbose', async () => {
  const terminal = await openTerminal(['serve', '--port', '0', '--verbose'], {
    columns: 200,
    env: { DASH_METRICS_ADDRESS: '127.0.0.1:0', DASH_DATA_DIR: temporaryFolder(), DASH_CHAT_DISABLED: '1' },
  })
  const started = await terminal.until(/listening on http/)
  const url = /listening on (\S+)/.exec(started)?.[1] ?? ''
  await (await fetch(`${url}/healthz`)).text()
  const screen = await terminal.until('/healthz')
  expect(screen).toMatch(
    /^\d\d:\d\d:\d\d\.\d{3} info {2}request requestId=\S+ method=GET path=\/healthz route=\/healthz status=200 finished=true durationMs=\S+$/m,
  )
  expect(screen).not.toContain('"level"')
})

test('a server on a terminal logs no requests and prints its address last', async () => {
  const terminal = await openTerminal(['serve', '--port', '0'], {
    columns: 200,
    env: { DASH_METRICS_ADDRESS: '127.0.0.1:0', DASH_DATA_DIR: temporaryFolder() },
  })
  const started = await terminal.until(/listening on http/)
  const lines = started.trimEnd().split('\n')
  expect(lines.at(-1)).toMatch(/^dash is listening on http:\S+$/)
  expect(started).toContain('metrics: http')
  const url = /listening on (\S+)/.exec(started)?.[1] ?? ''
  for (const path of ['/healthz', '/nowhere']) await (await fetch(`${url}${path}`)).text()
  await terminal.press('C-c')
  const screen = await terminal.until('stopping')
  expect(screen).not.toContain('/healthz')
  expect(screen).not.toContain(' info ')
})

test('a demo on a terminal shows progress while it fills, and clears it before its address', async () => {
  const terminal = await openTerminal(['serve', '--demo', '--port', '0'], { columns: 200 })
  await terminal.until(/DEMO: publishing \d{4}-/)
  const screen = await terminal.until(/DEMO: dash is listening on http:/)
  expect(screen.trimEnd().split('\n').at(-1)).toMatch(/^DEMO: dash is listening on http:\S+$/)
  expect(screen).not.toMatch(/DEMO: publishing \d{4}-/)
})
