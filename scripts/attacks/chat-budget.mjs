/**
 * Spends the chat's budget of a day (prices 3 and 15, one dollar) against the built server, with a scripted model. First one
 * address hangs up on its turns again and again while clients of other addresses ask; then, on a server with a new budget,
 * many addresses ask until the first turn is refused for the budget.
 *
 *     npm run build && node scripts/attacks/chat-budget.mjs [--hang-ups 300] [--json]
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { spawn } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { createClient } from '@libsql/client'

const DASH = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const BUDGET = 1_000_000
const ATTACKER = '203.0.113.7'
/** Turns of the attacker that are open at the same time, and how many of them come before the honest clients ask. */
const AT_ONCE = 10
const MOST_TURNS = 1_000

const { values } = parseArgs({
  options: { 'hang-ups': { type: 'string', default: '300' }, json: { type: 'boolean', default: false } },
})

/** A model that holds every prompt containing "hold" after its first delta, and completes the others. */
async function startModel() {
  const frame = (event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
  const answer = async (request, response) => {
    const chunks = []
    for await (const chunk of request) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(frame({ type: 'response.created', response: { id: 'r', status: 'in_progress' } }))
    response.write(frame({ type: 'response.output_text.delta', output_index: 0, delta: 'Hello' }))
    if (body.includes('hold the line')) return
    const usage = { input_tokens: Math.ceil(body.length / 4), output_tokens: 100 }
    response.end(frame({ type: 'response.completed', response: { id: 'r', usage } }))
  }
  const server = createServer((request, response) => {
    answer(request, response).catch((error) => response.destroy(error))
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${server.address().port}/v1`, close: () => server.closeAllConnections() }
}

async function startServer(model, folder) {
  const child = spawn(process.execPath, [DASH, 'serve', '--port', '0', '--data-dir', folder, '--json'], {
    cwd: folder,
    env: {
      PATH: process.env.PATH,
      DASH_LOG_LEVEL: 'error',
      DASH_SESSION_SECRET: 'a secret of the attack, of thirty-two bytes',
      OPENAI_BASE_URL: model.url,
      DASH_CHAT_MODEL: 'scripted',
      DASH_CHAT_PRICE_INPUT: '3',
      DASH_CHAT_PRICE_OUTPUT: '15',
      DASH_CHAT_BUDGET_USD_PER_DAY: '1',
      DASH_CHAT_BURST_PER_MINUTE: '100000',
      DASH_CHAT_MESSAGES_PER_DAY: '100000',
      DASH_CHAT_MIN_GAP_MS: '0',
      DASH_TRUSTED_PROXIES: '127.0.0.1/32',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = await once(child.stdout.setEncoding('utf8'), 'data')
  const state = createClient({ url: pathToFileURL(join(folder, 'state.db')).href })
  return {
    url: JSON.parse(line).url,
    async spent() {
      const { rows } = await state.execute('SELECT settled, reserved FROM chat_days')
      return { settled: Number(rows[0]?.settled ?? 0), reserved: Number(rows[0]?.reserved ?? 0) }
    },
    async stop() {
      child.kill('SIGTERM')
      await once(child, 'exit')
      state.close()
    },
  }
}

/** One turn of an address, in a new session; with `hangUp` the connection is closed at the first delta. */
async function turn({ url }, address, text, hangUp = false) {
  const headers = { origin: url, 'x-forwarded-for': address }
  const session = await fetch(`${url}/api/agent/session`, { method: 'POST', headers })
  const { sessionToken } = await session.json()
  const leaving = new AbortController()
  const response = await fetch(`${url}/api/agent/chat`, {
    method: 'POST',
    headers: { ...headers, 'x-agent-session': sessionToken },
    body: JSON.stringify({ messages: [{ role: 'user', content: text }] }),
    signal: leaving.signal,
  })
  if (response.status !== 200) return { status: response.status, ...(await response.json()) }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let read = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    read += value
    if (hangUp && read.includes('event: delta')) {
      leaving.abort()
      break
    }
  }
  return { status: 200, degraded: read.includes('"degraded":true'), whole: read.includes('event: done') }
}

const outcomeOf = ({ status, scope, degraded }) =>
  status === 200 ? (degraded ? 'without tools' : 'with tools') : `${status} ${scope}`

const count = (list) => {
  const sums = {}
  for (const each of list) sums[each] = (sums[each] ?? 0) + 1
  return sums
}

const secondsToMidnight = () => 86_400 - Math.floor((Date.now() / 1000) % 86_400)

async function withServer(run) {
  const folder = mkdtempSync(join(tmpdir(), 'dash-chat-budget-'))
  const model = await startModel()
  const server = await startServer(model, folder)
  try {
    return await run(server)
  } finally {
    await server.stop()
    model.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function hangUps(server, total) {
  const attacks = []
  const honest = []
  for (let made = 0; made < total; made += AT_ONCE) {
    const attack = Array.from({ length: AT_ONCE }, (_, index) =>
      turn(server, ATTACKER, `hold the line ${made + index}`, true),
    )
    const asked = await turn(server, `198.51.100.${(made / AT_ONCE) % 250}`, `What is new? ${made}`)
    honest.push(asked)
    attacks.push(...(await Promise.all(attack)))
  }
  const refused = honest.find(({ status }) => status !== 200)
  return {
    hangUps: count(attacks.map(outcomeOf).map((outcome) => outcome.replace('with tools', 'admitted'))),
    honest: count(honest.map(outcomeOf)),
    firstRefusalOfAnHonestClient: refused ?? null,
    spent: await server.spent(),
  }
}

async function untilTheBudgetIsUsed(server) {
  const outcomes = []
  for (let asked = 0; asked < MOST_TURNS; asked += 1) {
    const result = await turn(
      server,
      `198.51.${100 + Math.floor(asked / 250)}.${asked % 250}`,
      `What? ${asked}`,
    )
    outcomes.push(outcomeOf(result))
    if (result.status !== 429) continue
    const { settled, reserved } = await server.spent()
    const { budget } = await (await fetch(`${server.url}/api/agent/status`)).json()
    return {
      turns: count(outcomes),
      firstRefusal: { ...result, atPercent: (settled / BUDGET) * 100, reserved, status: budget },
      secondsToMidnight: secondsToMidnight(),
    }
  }
  return { turns: count(outcomes), firstRefusal: null, spent: await server.spent() }
}

const result = {
  tenHangUps: await withServer((server) => hangUps(server, 10)),
  manyHangUps: await withServer((server) => hangUps(server, Number(values['hang-ups']))),
  honestTurns: await withServer(untilTheBudgetIsUsed),
}
console.log(JSON.stringify(result, null, values.json ? 0 : 2))
