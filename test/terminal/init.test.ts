import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { describe, expect, test } from 'vitest'
import { dash, temporaryFolder } from '../support/dash.ts'
import { ENDED, openTerminal } from './terminal.ts'

/** The flags of the settings of the address, so that no prompt asks for them. */
const ADDRESS = ['--host', '127.0.0.1', '--port', '3000']

describe('the prompts of init', () => {
  test('prompts appear on a terminal, and their values are written', async () => {
    const home = temporaryFolder()
    const terminal = await openTerminal(['init'], { home, outputFile: 'units', rows: 50 })
    for (const [question, keys, answer] of [
      ['Data folder', [], ''],
      ['Address to listen on', [], ''],
      ['Port?', ['C-u'], '8080'],
      ['Public address', [], 'dash.example'],
      ['must be an absolute http(s) URL', ['C-u'], 'https://dash.example'],
      ['Addresses of the proxy in front', [], '127.0.0.1'],
      ['Which model', ['Down'], ''],
      ['Key of the model-routing service', [], 'a-key-of-mine'],
      ['How will you run', ['Down'], ''],
    ] as const) {
      await terminal.until(question)
      if (keys.length > 0) await terminal.press(...keys)
      await terminal.enter(answer)
    }
    const screen = await terminal.until(`${ENDED} 0`)
    expect(screen).not.toContain('a-key-of-mine')
    const { DASH_SESSION_SECRET: _fresh, ...settings } = parseEnv(readFileSync(join(home, '.env'), 'utf8'))
    expect(settings).toEqual({
      DASH_DATA_DIR: join(home, 'dash-data'),
      HOST: '127.0.0.1',
      PORT: '8080',
      DASH_BASE_URL: 'https://dash.example',
      DASH_TRUSTED_PROXIES: '127.0.0.1',
      DASH_CHAT_MODEL: 'auto',
      OPENROUTER_API_KEY: 'a-key-of-mine',
    })
    expect(statSync(join(home, '.env')).mode & 0o777).toBe(0o600)
    // Standard output has no prompt and no escape.
    const printed = readFileSync(join(home, 'units'), 'utf8')
    expect(printed).toMatch(/^# dash, for the crontab of /)
    expect(printed).not.toContain('systemd')
    expect(printed).not.toContain('\x1b')
  })

  test('prompts request a provider, its model, its key and its prices, in this order', async () => {
    const home = temporaryFolder()
    const flags = ['--data-dir', 'data', '--base-url', 'http://dash.example', '--print', 'nothing']
    const terminal = await openTerminal(['init', ...flags, ...ADDRESS], { home, rows: 50 })
    await terminal.until('Addresses of the proxy in front')
    await terminal.press('Enter')
    await terminal.until('Which model')
    await terminal.press('Down', 'Down', 'Enter')
    for (const [question, answer] of [
      ['API base URL of the provider', '/v2'],
      ['Model id', 'some-model'],
      ['API key of the provider', 'a-key-of-mine'],
      ['per million input tokens', '0.5'],
      ['per million output tokens', '.5'],
      ['Key of the model-routing service', ''],
    ] as const) {
      await terminal.until(question)
      await terminal.enter(answer)
    }
    await terminal.until(`${ENDED} 0`)
    expect(parseEnv(readFileSync(join(home, '.env'), 'utf8'))).toMatchObject({
      DASH_CHAT_MODEL: 'some-model',
      OPENAI_API_KEY: 'a-key-of-mine',
      DASH_CHAT_PRICE_INPUT: '0.5',
      DASH_CHAT_PRICE_OUTPUT: '0.5',
    })
  })

  test('prompts can be cancelled, and then nothing is written', async () => {
    const home = temporaryFolder()
    const terminal = await openTerminal(['init'], { home })
    await terminal.until('Data folder')
    await terminal.press('C-c')
    await terminal.until(`${ENDED} 130`)
    expect(readdirSync(home)).toEqual([])
  })

  test('no prompt appears with --yes', async () => {
    const terminal = await openTerminal(['init', '--yes', '--quiet'])
    expect(await terminal.until(`${ENDED} 0`)).not.toContain('?')
  })
})

test('systemd accepts the units unchanged, for paths with any characters', async () => {
  const cwd = join(temporaryFolder(), "100% o'mine $HOME")
  mkdirSync(cwd)
  mkdirSync(join(cwd, 'units'))
  mkdirSync(join(cwd, 'dash-data'))
  writeFileSync(join(cwd, '.env'), `DASH_LOG_KEY_FILE="${join(cwd, 'the key', 'log.key')}"\n`)
  const args = ['init', '--no-env', '--json', '--user', 'root', '--write-units', 'units']
  const { code, stdout } = await dash(args, { cwd })
  expect(code).toBe(0)
  expect(stdout).toContain("o'mine $HOME/the key")
  const { unitFiles } = JSON.parse(stdout) as { unitFiles: string[] }
  const verification = spawnSync('systemd-analyze', ['verify', '--man=no', ...unitFiles], {
    encoding: 'utf8',
  })
  expect(verification).toMatchObject({ status: 0, stdout: '', stderr: '' })
  const timers = unitFiles.filter((path) => path.endsWith('.timer'))
  for (const timer of timers) {
    for (const [, calendar = ''] of readFileSync(timer, 'utf8').matchAll(/^OnCalendar=(.*)$/gm)) {
      execFileSync('systemd-analyze', ['calendar', calendar], { stdio: 'ignore' })
    }
  }
})
