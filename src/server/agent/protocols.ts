import { z } from 'zod'
import { BODY_MAX_BYTES } from '../../domain/agent/bounds.ts'
import { parseChatRequest, readCompletionRequest } from '../../domain/agent/chat-request.ts'
import type { ParsedChatRequest } from '../../domain/agent/chat-request.ts'
import type { AgentEvent } from '../../domain/agent/schema.ts'
import { parseJson } from '../../domain/text.ts'
import { dataFrame } from './answer-stream.ts'
import type { FrameEvent } from './answer-stream.ts'
import { chatContract } from './contracts.ts'

/** The stream protocols of the chat (docs/agent-chat.md#other-protocols): the same turn, its events in another form. */

/** A parsed request, and the form of its answer. */
interface Exchange {
  parsed: ParsedChatRequest
  /** Serialises the events of a turn; absent for the chat's own form. @param turn id of the turn */
  framesOf?: (turn: string) => FrameEvent
}

/** A protocol: its route, and the form of a request and of its answer. */
interface Protocol {
  contract: typeof chatContract
  /** Reads the text of a body. */
  read: (body: string) => Exchange
  /** Headers of an answer besides those of the chat. */
  headers: Readonly<Record<string, string>>
}

/** The texts of an answer: one is open until something else comes, and the next has another id. */
class Texts {
  readonly #turn: string
  readonly #begin: (id: string) => object
  readonly #end: (id: string) => object
  #count = 0
  #isOpen = false

  constructor(turn: string, begin: (id: string) => object, end: (id: string) => object) {
    this.#turn = turn
    this.#begin = begin
    this.#end = end
  }

  get id(): string {
    return `${this.#turn}-text-${this.#count}`
  }

  /** The record that opens a text; empty while one is open. */
  open(): string {
    if (this.#isOpen) return ''
    this.#isOpen = true
    this.#count += 1
    return dataFrame(this.#begin(this.id))
  }

  /** The record that closes the open text; empty without one. */
  close(): string {
    if (!this.#isOpen) return ''
    this.#isOpen = false
    return dataFrame(this.#end(this.id))
  }
}

/** Names tool calls by their order: the tools of a turn run one after another. */
function callIds(turn: string): (status: 'start' | 'done') => string {
  let calls = 0
  return (status) => `${turn}-call-${status === 'start' ? (calls += 1) : calls}`
}

const errorText = ({ data }: AgentEvent & { event: 'error' }): string => `${data.error}: ${data.code}`

const STREAM_END = 'data: [DONE]\n\n'

/** Events as the UI message stream of the AI SDK, version 1. */
function uiFrames(turn: string): FrameEvent {
  const texts = new Texts(
    turn,
    (id) => ({ type: 'text-start', id }),
    (id) => ({ type: 'text-end', id }),
  )
  const callId = callIds(turn)
  const frameOfTool = ({ data: { name, status } }: AgentEvent & { event: 'tool' }): string => {
    const call = { toolCallId: callId(status), providerExecuted: true, dynamic: true }
    return status === 'start'
      ? dataFrame({ type: 'tool-input-available', ...call, toolName: name, input: {} })
      : dataFrame({ type: 'tool-output-available', ...call, output: {} })
  }
  return (event) => {
    switch (event.event) {
      case 'meta': {
        const metadata = { type: 'message-metadata', messageMetadata: event.data }
        return dataFrame({ type: 'start', messageId: turn }) + dataFrame(metadata)
      }
      case 'tool':
        return texts.close() + frameOfTool(event)
      case 'delta':
        return texts.open() + dataFrame({ type: 'text-delta', id: texts.id, delta: event.data.text })
      case 'done':
        return texts.close() + dataFrame({ type: 'finish', messageMetadata: event.data }) + STREAM_END
      case 'error':
        return texts.close() + dataFrame({ type: 'error', errorText: errorText(event) }) + STREAM_END
    }
  }
}

/** Events as those of AG-UI. */
function agUiFrames(run: AgUiRun, turn: string): FrameEvent {
  const texts = new Texts(
    turn,
    (messageId) => ({ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' }),
    (messageId) => ({ type: 'TEXT_MESSAGE_END', messageId }),
  )
  const callId = callIds(turn)
  return (event) => {
    switch (event.event) {
      case 'meta':
        return dataFrame({ type: 'RUN_STARTED', ...run })
      case 'tool': {
        const { name, status } = event.data
        const toolCallId = callId(status)
        return status === 'start'
          ? texts.close() + dataFrame({ type: 'TOOL_CALL_START', toolCallId, toolCallName: name })
          : dataFrame({ type: 'TOOL_CALL_END', toolCallId })
      }
      case 'delta': {
        // A text without content is not allowed.
        if (event.data.text === '') return ''
        const opened = texts.open()
        return (
          opened + dataFrame({ type: 'TEXT_MESSAGE_CONTENT', messageId: texts.id, delta: event.data.text })
        )
      }
      case 'done':
        return texts.close() + dataFrame({ type: 'RUN_FINISHED', ...run, result: event.data })
      case 'error':
        return (
          texts.close() + dataFrame({ type: 'RUN_ERROR', message: errorText(event), code: event.data.error })
        )
    }
  }
}

const uiRequestSchema = z.looseObject({
  id: z.string().optional().describe('of the conversation; not used'),
  messages: z.array(
    z.looseObject({
      role: z.string(),
      parts: z.array(z.looseObject({ type: z.string() })).describe('the texts of parts of type `text` count'),
    }),
  ),
})

const ID_MAX_LENGTH = 200
const runId = z.string().max(ID_MAX_LENGTH)

const agUiRequestSchema = z.looseObject({
  threadId: runId,
  runId,
  messages: z.array(z.looseObject({ role: z.string(), content: z.unknown().optional() })),
  forwardedProps: z.unknown().optional().describe('`scope`, `sort` and `settings` of the chat'),
})

const agUiRunSchema = agUiRequestSchema.pick({ threadId: true, runId: true })
type AgUiRun = Pick<z.infer<typeof agUiRequestSchema>, 'threadId' | 'runId'>

function readAgUi(body: string): Exchange {
  const value = parseJson(body)
  const run = agUiRunSchema.safeParse(value).data
  if (!run) return { parsed: { ok: false, code: 'invalid_json' } }
  const { threadId, runId: id } = run
  return {
    parsed: readCompletionRequest(value, 'forwardedProps'),
    framesOf: (turn) => agUiFrames({ threadId, runId: id }, turn),
  }
}

const BODY = { required: true, description: `At most ${BODY_MAX_BYTES} bytes.` } as const
const { headers: REQUEST_HEADERS = [] } = chatContract.request ?? {}

/** `POST /api/agent/chat/ui` (docs/agent-chat.md). */
export const uiContract: typeof chatContract = {
  ...chatContract,
  path: '/api/agent/chat/ui',
  operationId: 'chatWithAgentAsUiMessages',
  summary: 'Send the conversation and receive the answer as a UI message stream of the AI SDK',
  description:
    'As `/api/agent/chat`, with the messages and the UI message stream (version 1) of the AI SDK. Exactly one `finish` or `error`, then `[DONE]`.',
  request: { headers: REQUEST_HEADERS, body: { ...BODY, schema: uiRequestSchema } },
  success: z.string(),
  successDescription: 'A UI message stream',
  successHeaders: { ...chatContract.successHeaders, 'X-Vercel-AI-UI-Message-Stream': '`v1`' },
}

/** `POST /api/agent/chat/ag-ui` (docs/agent-chat.md). */
export const agUiContract: typeof chatContract = {
  ...chatContract,
  path: '/api/agent/chat/ag-ui',
  operationId: 'chatWithAgentAsAgUi',
  summary: 'Send the conversation and receive the answer as events of AG-UI',
  description:
    'As `/api/agent/chat`, with the run input and the events of AG-UI. Exactly one `RUN_FINISHED` or `RUN_ERROR`.',
  request: { headers: REQUEST_HEADERS, body: { ...BODY, schema: agUiRequestSchema } },
  success: z.string(),
  successDescription: 'A stream of AG-UI events',
}

/** Every protocol of the chat. */
export const PROTOCOLS: readonly Protocol[] = [
  { contract: chatContract, headers: {}, read: (body) => ({ parsed: parseChatRequest(body) }) },
  {
    contract: uiContract,
    headers: { 'x-vercel-ai-ui-message-stream': 'v1' },
    read: (body) => ({ parsed: readCompletionRequest(parseJson(body), 'beside'), framesOf: uiFrames }),
  },
  { contract: agUiContract, headers: {}, read: readAgUi },
]
