import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execFileSync, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createClient } from '@libsql/client'
import { describe, expect, test, onTestFinished } from 'vitest'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import {
  parseEnvironment,
  examineEnvironment,
  withoutSecrets,
  readNamedFile,
} from '../../../src/cli/settings/environment.ts'

const parsed = (name: string, value: string, others: Record<string, string> = {}): unknown =>
  parseEnvironment({ [name]: value, ...others }, process.cwd())[name as 'OPENAI_BASE_URL']

test('the address of the site has no path, and is read as browsers send it', () => {
  expect(parsed('DASH_BASE_URL', 'https://dash.example:8443/')).toBe('https://dash.example:8443')
  expect(parsed('DASH_BASE_URL', 'https://BÜCHER.example:443')).toBe('https://xn--bcher-kva.example')
  for (const path of ['dash', 'dash/', '%64ash', '/dash', '.', 'dash/..', '%2e', ' '])
    expect(() => parsed('DASH_BASE_URL', `https://dash.example/${path}`)).toThrow('an address without a path')
})

test.each([
  ['::', true],
  ['fe80::1%eth0', false],
  ['http://dash', false],
  ['a b', false],
])('the address to listen on may be %s: %s', (value, isAllowed) => {
  const parse = expect(() => parsed('HOST', value))
  if (isAllowed) parse.not.toThrow()
  else parse.toThrow('must be a host name or an IP address')
})

test.each(['~/data', '$HOME/data', '/home/${USER}/data'])(
  'the data folder %s, for a shell, is refused',
  (value) => {
    expect(() => parsed('DASH_DATA_DIR', value)).toThrow('must not have ~ or a variable')
  },
)

test('a secret from a file loses its byte order mark, and a file in UTF-16 is refused', async () => {
  const path = join(temporaryFolder(), 'secret')
  await writeFile(path, '\uFEFFSesame\r\n')
  const secret = (): unknown => parsed('OPENAI_API_KEY', '', { OPENAI_API_KEY_FILE: path })
  expect(secret()).toBe('Sesame')
  await writeFile(path, '\uFEFFSesame\n', 'utf16le')
  expect(secret).toThrow(`OPENAI_API_KEY_FILE="${path}" is not UTF-8 text; save the file as UTF-8`)
})

test.each(['DASH_BASE_URL', 'OPENROUTER_BASE_URL', 'OPENAI_BASE_URL'])(
  'the address %s has no user and no query, and loses its trailing slash',
  (name) => {
    for (const [value, shown] of [
      ['https://a@service.example/v1', 'https://(not shown)@service.example/v1'],
      ['https://service.example/v1?a=b', 'https://service.example/v1?a=(not shown)'],
    ] as const)
      expect(() => parsed(name, value)).toThrow(
        `${name}=${JSON.stringify(shown)} must be an address without user, query or fragment`,
      )
    const path = name === 'DASH_BASE_URL' ? '' : '/v1'
    expect(parsed(name, `https://service.example${path}/`)).toBe(`https://service.example${path}`)
  },
)

test.each(['DASH_HN_URL', 'DASH_LESSWRONG_URL', 'DASH_VERIFICATION_URL', 'DASH_VERIFICATION_WIDGET_URL'])(
  'the address %s may have a query and an @ in its path, and loses its trailing slash',
  (name) => {
    for (const value of ['https://mirror.example/@hn/v0', 'https://mirror.example/?u=https://a@lobste.rs'])
      expect(parsed(name, `${value}/`)).toBe(value)
    for (const value of ['https://a:Sesame@mirror.example/', 'https://mirror.example/#part'])
      expect(() => parsed(name, value)).toThrow('must be an address without user or fragment')
  },
)

test.each([
  ['libsql://Sesame@host/db', 'libsql://(not shown)@host/db'],
  ['libsql://host?jwt=Sesame&tls=0', 'libsql://host?jwt=(not shown)&tls=0'],
  ['libsql://host?auth_token=Sesame', 'libsql://host?auth_token=(not shown)'],
  ['https://host/p?apiKey=Sesame=', 'https://host/p?apiKey=(not shown)'],
  ['https://host/p?Sesame', 'https://host/p?(not shown)'],
  ['s3://b/p?region=eu&endpoint=http%3A%2F%2Fu%3ASesame%40h', 's3://b/p?region=eu&endpoint=(not shown)'],
  ['s3://b/p?endpoint=%zzSesame', 's3://b/p?endpoint=(not shown)'],
  ['"http://u:Sesame@h"', '"http://(not shown)@h"'],
])('the address %s is shown as %s', (given, shown) => {
  expect(withoutSecrets(given)).toBe(shown)
})

test.each(['s3://bucket/p?endpoint=http://h:1&region=eu', 'file:/home/me@work/x', 'what? a=b', ''])(
  'the value %j is shown unchanged',
  (given) => {
    expect(withoutSecrets(given)).toBe(given)
  },
)

const problemsOf = (env: Record<string, string>): string[] =>
  examineEnvironment(env, process.cwd()).problems.map(({ message }) => message)

test.each([
  ['libsql://host:8080/db?tls=0', true],
  ['libsql://[::1]:8080?authToken=a&tls=0', true],
  ['libsql://host?tls=1&authToken=tls=0', true],
  ['http://host?authToken=&tls=0', true],
  ['https://host/@a?&tls=1&', true],
  ['libsql://host/db?tls=0', false],
  ['libsql://[::1]?authToken=a&tls=0', false],
  ['http://host?tls=1', false],
  ['https://host?authToken=a&tls=0', false],
  ['http://host?tls=1tls=0', false],
  ['http://host/%zz', false],
  ['http://host?authToken=%zz', false],
])('the address %s of a libSQL server is accepted: %s, as by its client', (url, isAccepted) => {
  expect(problemsOf({ DASH_DATABASE_URL: url })).toHaveLength(isAccepted ? 0 : 1)
  const open = (): void => createClient({ url }).close()
  if (isAccepted) expect(open).not.toThrow()
  else expect(open).toThrow('URL_INVALID')
})

test.each(['DASH_DATABASE_URL', 'DASH_STATE_URL', 'DASH_VERIFICATION_URL', 'DASH_VERIFICATION_WIDGET_URL'])(
  'the address %s with a user is refused, as a request to it would be, and its password is not shown',
  (name) => {
    const problems = problemsOf({ [name]: 'https://u:Sesame@host/db?a=b' })
    expect(problems[0]).toMatch(
      /^DASH_\w+="https:\/\/\(not shown\)@host\/db\?a=\(not shown\)" must be .*without user/,
    )
  },
)

test('the problem of s3://bucket/p?key=Sesame is reported without its secret', () => {
  const problems = problemsOf({ DASH_STORE_URL: 's3://bucket/p?key=Sesame' })
  expect(problems.length).toBeGreaterThan(0)
  expect(problems.join()).not.toContain('Sesame')
})

test.each(['https://*.a.example', 'https://a.example/', 'null'])('%s is not an allowed origin', (origin) => {
  const problem = expect.stringContaining(`; "${origin}" is not an origin`) as unknown
  expect(problemsOf({ DASH_ALLOWED_ORIGINS: `https://a.example,${origin}` })).toEqual([problem])
})

describe('the webhook', () => {
  const url = 'https://hooks.example/@a-key/?b=c'
  const key = Buffer.alloc(24, 9)
  const secret = `whsec_${key.toString('base64')}`
  const SECRET = /^DASH_MODEL_WEBHOOK_SECRET=\(not shown\) must be whsec_ and 24 to 64 bytes in base64/
  const ADDRESS =
    /^DASH_MODEL_WEBHOOK_URL=\(not shown\) must be an absolute http\(s\) URL without user or fragment$/

  test.each([
    [url, 'not-a-secret', SECRET],
    [url, `whsec_${Buffer.alloc(65).toString('base64')}`, SECRET],
    [url, `whsec_${Buffer.alloc(32, 255).toString('base64url')}`, SECRET],
    ['ftp://hooks.example', secret, ADDRESS],
    ['https://user@hooks.example/', secret, ADDRESS],
  ])('the address %s with the secret %s is refused without repeating it', (address, given, problem) => {
    const env = { DASH_MODEL_WEBHOOK_URL: address, DASH_MODEL_WEBHOOK_SECRET: given }
    expect(problemsOf(env)).toEqual([expect.stringMatching(problem)])
  })

  test('a key of 24 bytes is accepted, and the address is kept as it is', () => {
    const env = { DASH_MODEL_WEBHOOK_URL: url, DASH_MODEL_WEBHOOK_SECRET: secret }
    const { settings } = examineEnvironment(env, process.cwd())
    expect(settings?.DASH_MODEL_WEBHOOK_SECRET).toEqual(key)
    expect(settings?.DASH_MODEL_WEBHOOK_URL).toBe(url)
  })
})

async function newPipe(): Promise<string> {
  const path = join(temporaryFolder(), 'pipe')
  execFileSync('mkfifo', [path])
  return path
}

describe('a named file', () => {
  test('a regular file is read whole', async () => {
    const path = join(temporaryFolder(), 'file')
    const bytes = Buffer.alloc(200_000, 'x')
    writeFileSync(path, bytes)
    expect(readNamedFile(path).equals(bytes)).toBe(true)
  })

  test('a pipe is read until its writer closes it, however slow the writer is', async () => {
    const path = await newPipe()
    const writer = spawn('sh', ['-c', `{ printf one; sleep 0.2; printf two; } > '${path}'`])
    onTestFinished(() => void writer.kill())
    expect(readNamedFile(path).toString()).toBe('onetwo')
  })

  test('a pipe without a writer is refused instead of waited for', async () => {
    const path = await newPipe()
    expect(() => readNamedFile(path)).toThrow('nothing is written to the pipe')
  })

  test('a device without data is empty', () => {
    expect(readNamedFile('/dev/null').byteLength).toBe(0)
  })

  test('a missing file and a folder are errors of the system', async () => {
    const folder = temporaryFolder()
    expect(() => readNamedFile(join(folder, 'missing'))).toThrow('ENOENT')
    expect(() => readNamedFile(folder)).toThrow('EISDIR')
  })
})
