import { expect, test } from 'vitest'
import { temporaryFolder } from '../support/dash.ts'
import { openTerminal } from '../support/terminal.ts'

test('a server on a terminal logs lines for reading', async () => {
  const terminal = await openTerminal(['serve', '--port', '0'], {
    columns: 200,
    env: { DASH_METRICS_ADDRESS: '127.0.0.1:0', DASH_DATA_DIR: temporaryFolder(), DASH_CHAT_DISABLED: '1' },
  })
  const started = await terminal.until(/metrics: http/)
  const url = /listening on (\S+)/.exec(started)?.[1] ?? ''
  await (await fetch(`${url}/healthz`)).text()
  const screen = await terminal.until('/healthz')
  expect(screen).toMatch(
    /^\d\d:\d\d:\d\d\.\d{3} info {2}request requestId=\S+ method=GET path=\/healthz status=200 finished=true durationMs=\S+$/m,
  )
  expect(screen).not.toContain('"level"')
})
