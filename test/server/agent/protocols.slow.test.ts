import { HttpAgent } from '@ag-ui/client'
import type { BaseEvent } from '@ag-ui/client'
import { DefaultChatTransport, readUIMessageStream } from 'ai'
import type { UIMessage } from 'ai'
import { describe, expect, test } from 'vitest'
import { DAY_LIMITS, sessionOf, startAgent } from '../../support/agent.ts'
import type { AgentServer, AgentServerOptions } from '../../support/agent.ts'

const ANSWER = 'Hello Да 👩‍🚀 é'
const TOOLS = { provider: 'three rounds of tools' } as const

async function startWithSession(
  options: AgentServerOptions = {},
): Promise<{ server: AgentServer; headers: Record<string, string> }> {
  const server = await startAgent(options)
  return { server, headers: { origin: server.url, 'x-agent-session': await sessionOf(server) } }
}

const question: UIMessage = { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'What is new?' }] }

/** Sends one question with the transport of the AI SDK; resolves to the answer as its user interface shows it. */
async function askByUi(
  server: AgentServer,
  headers: Record<string, string>,
  signal?: AbortSignal,
): Promise<UIMessage | undefined> {
  const transport = new DefaultChatTransport({ api: `${server.url}/api/agent/chat/ui`, headers })
  const stream = await transport.sendMessages({
    trigger: 'submit-message',
    chatId: 'c1',
    messageId: undefined,
    messages: [question],
    abortSignal: signal,
  })
  let last: UIMessage | undefined
  for await (const message of readUIMessageStream({ stream, terminateOnError: true })) last = message
  return last
}

function agentOf(server: AgentServer, headers: Record<string, string>): HttpAgent {
  const agent = new HttpAgent({ url: `${server.url}/api/agent/chat/ag-ui`, headers })
  agent.messages = [{ id: 'm1', role: 'user', content: 'What is new?' }]
  return agent
}

/** Runs the AG-UI client; resolves to the types of its events, and the text of the answer. */
async function askByAgUi(
  server: AgentServer,
  headers: Record<string, string>,
): Promise<{ types: string[]; text: string }> {
  const agent = agentOf(server, headers)
  const events: BaseEvent[] = []
  const { newMessages } = await agent.runAgent({}, { onEvent: ({ event }) => void events.push(event) })
  const text = newMessages.flatMap(({ role, content }) => (role === 'assistant' && content ? [content] : []))
  return { types: events.map(({ type }) => type), text: text.join('\n') }
}

/** The records of a raw answer. */
async function recordsOf(
  server: AgentServer,
  path: string,
  headers: Record<string, string>,
  body: object,
): Promise<{ status: number; headers: Headers; records: string[] }> {
  const response = await fetch(`${server.url}${path}`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    records: [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => data),
  }
}

describe('the transport of the AI SDK', () => {
  test('reads the answer with its tools as a message', async () => {
    const { server, headers } = await startWithSession(TOOLS)
    const message = await askByUi(server, headers)
    expect(message?.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('')).toContain(
      ANSWER,
    )
    const tools = message?.parts.filter(({ type }) => type === 'dynamic-tool')
    expect(tools?.length).toBeGreaterThan(0)
    expect(tools).toEqual(tools?.map(() => expect.objectContaining({ state: 'output-available' })))
    expect(message?.metadata).toMatchObject({ tier: 'free', usage: { in: expect.any(Number) } })
  })

  test('gets an error in the stream as an error, once, and the end after it', async () => {
    const { server, headers } = await startWithSession({ provider: 'failed' })
    await expect(askByUi(server, headers)).rejects.toThrow(/upstream_error/)
    const { records } = await recordsOf(server, '/api/agent/chat/ui', headers, { messages: [question] })
    expect(records.filter((record) => record.includes('"type":"error"'))).toHaveLength(1)
    expect(records.at(-1)).toBe('[DONE]')
    expect(records.some((record) => record.includes('"finish"'))).toBe(false)
  })

  test('gets a refusal before the stream with its code', async () => {
    const { server, headers } = await startWithSession()
    await expect(askByUi(server, { origin: server.url })).rejects.toThrow(/invalid_session/)
    await expect(askByUi(server, { ...headers, origin: 'https://foreign.example' })).rejects.toThrow(
      /forbidden_origin/,
    )
    expect(server.provider.requests).toEqual([])
  })

  test('that aborts ends the turn', async () => {
    const { server, headers } = await startWithSession({ provider: 'silence after first event' })
    const controller = new AbortController()
    const asked = askByUi(server, headers, controller.signal).catch((error: unknown) => error)
    await expect.poll(() => server.provider.requests.length).toBe(1)
    controller.abort()
    await asked
    await server.settled()
    expect(server.turns()).toHaveLength(1)
  })
})

describe('the client of AG-UI', () => {
  test('accepts the order of the events and reads the answer', async () => {
    const { server, headers } = await startWithSession(TOOLS)
    const { types, text } = await askByAgUi(server, headers)
    expect(text).toContain(ANSWER)
    expect([types[0], types.at(-1)]).toEqual(['RUN_STARTED', 'RUN_FINISHED'])
    const count = (type: string): number => types.filter((each) => each === type).length
    expect(count('TOOL_CALL_START')).toBeGreaterThan(0)
    expect(count('TOOL_CALL_START')).toBe(count('TOOL_CALL_END'))
    expect(count('TEXT_MESSAGE_START')).toBe(count('TEXT_MESSAGE_END'))
  })

  test('gets an error in the stream as a failed run, and a refusal before it as an HTTP error', async () => {
    const failing = await startWithSession({ provider: 'failed' })
    const input = { threadId: 't', runId: 'r', messages: [{ id: 'm', role: 'user', content: 'x' }] }
    const { records } = await recordsOf(failing.server, '/api/agent/chat/ag-ui', failing.headers, input)
    expect(JSON.parse(records.at(-1) ?? '')).toMatchObject({ type: 'RUN_ERROR', code: 'upstream_error' })
    expect(records.filter((record) => /RUN_(ERROR|FINISHED)/.test(record))).toHaveLength(1)
    await expect(askByAgUi(failing.server, { origin: failing.server.url })).rejects.toThrow(/401/)
  })

  test('a run without ids is refused, and the ids come back unchanged', async () => {
    const { server, headers } = await startWithSession()
    const messages = [{ id: 'm', role: 'user', content: [{ type: 'text', text: 'x' }] }]
    expect((await recordsOf(server, '/api/agent/chat/ag-ui', headers, { messages })).status).toBe(400)
    const ids = { threadId: 'thread "1"', runId: 'run\n2' }
    const { status, records } = await recordsOf(server, '/api/agent/chat/ag-ui', headers, {
      ...ids,
      messages,
    })
    expect(status).toBe(200)
    for (const record of [records[0], records.at(-1)]) expect(JSON.parse(record ?? '')).toMatchObject(ids)
  })
})

test('the protocols count in one quota, and the scope of an item passes in each', async () => {
  const { server, headers } = await startWithSession({
    settings: { limits: { ...DAY_LIMITS, messagesPerSession: 2 } },
  })
  const scope = { type: 'item', key: 'hn-unknown' }
  const ui = await recordsOf(server, '/api/agent/chat/ui', headers, { messages: [question], scope })
  expect(ui.headers.get('x-vercel-ai-ui-message-stream')).toBe('v1')
  const agUi = {
    threadId: 't',
    runId: 'r',
    messages: [{ role: 'user', content: 'x' }],
    forwardedProps: { scope },
  }
  expect((await recordsOf(server, '/api/agent/chat/ag-ui', headers, agUi)).status).toBe(200)
  const third = await recordsOf(server, '/api/agent/chat/ui', headers, { messages: [question] })
  expect(third.status).toBe(429)
})
