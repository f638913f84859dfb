import type { Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { MicroUsd, Admission } from '../../domain/agent/bounds.ts'
import type { ChatRequest } from '../../domain/agent/chat-request.ts'
import type { ModelCall, Prices, ToolName } from '../../domain/agent/model-call.ts'
import { INSTRUCTIONS, cacheKey, largestInputBytes, turnInput } from '../../domain/agent/prompt.ts'
import type { AgentEvents } from '../../domain/agent/schema.ts'
import { TOOL_DEFINITIONS } from '../../domain/agent/tools.ts'
import { TURN_MESSAGE } from '../route.ts'
import { costOfAnswer, emptyTally, makeAnswer } from './answer.ts'
import type { AnswerPart, Tally } from './answer.ts'
import { orStopped, stopAfter } from './event-stream.ts'
import type { Ending, EventStream, Stop } from './event-stream.ts'
import { groundingOf } from './grounding.ts'
import type { AgentPorts } from './service.ts'
import type { AnswerReader, SharedAnswers } from './shared-answers.ts'
import { createAgentTools } from './tools.ts'

/** Bytes of the token that marks where a turn's stored data ends. */
const MARKER_TOKEN_BYTES = 16

/**
 * Answers an admitted turn over its stream (docs/decisions/0030-how-a-turn-is-streamed.md): exactly one terminal event
 * unless the reader has left, one settlement, one line in the log. Never throws.
 */
export async function runTurn(
  ports: AgentPorts,
  shared: SharedAnswers<AnswerPart>,
  turn: Turn,
): Promise<void> {
  const { admission, stream, stop } = turn
  const facts: Facts = {
    scope: null,
    source: null,
    firstDeltaMs: null,
    tally: emptyTally(admission.reserved),
    startedAt: performance.now(),
  }
  ports.meter.streaming()
  const openTools = new Map<ToolName, number>()
  let ending: Ending
  let reader: AnswerReader<AnswerPart> | null = null
  try {
    // `meta` is with the socket before anything else takes time.
    await nextTurn()
    const began = await begin(ports, shared, turn, facts)
    if ('cached' in began) ending = await sendCached(stream, began.cached, facts)
    else {
      let sent: Ending | 'withdrawn'
      do {
        reader = began.join()
        sent = await sendAnswer(turn, reader, openTools, facts)
      } while (sent === 'withdrawn')
      ending = sent
    }
  } catch (error) {
    ending = endingOf(error, turn, ports)
  }
  stop.cancel()
  reader?.leave()
  const settled = settlementOf(ports, admission.turn, reader)
  // A server that ends closes the connections whose answers have ended: not before their money is settled.
  close(stream, ending, openTools, stop.cutShort ? settled : undefined)
  await settled
  report(ports, turn, ending, facts)
}

/** Over once the turn is charged: by the answer that it began, or with nothing. */
async function settlementOf(
  ports: AgentPorts,
  turn: string,
  reader: AnswerReader<AnswerPart> | null,
): Promise<void> {
  if (reader?.leads) return reader.made.catch(() => undefined)
  await nextTurn()
  await settle(ports, turn, 0)
}

/** One line in the log, and the same in numbers. */
function report({ log, meter }: AgentPorts, turn: Turn, ending: Ending, facts: Facts): void {
  const line = lineOf(turn, ending, facts)
  log.info(line, TURN_MESSAGE)
  const { source, firstDeltaMs } = facts
  const { durationMs, costMicroUsd } = line
  // A shared answer is charged to the turn that began it.
  meter.ended({ ending, source, firstDeltaMs, durationMs, costMicroUsd: source === 'own' ? costMicroUsd : 0 })
}

/** The stored answer to the question, or what reads the one being made, or begins it. */
async function begin(
  ports: AgentPorts,
  shared: SharedAnswers<AnswerPart>,
  { request, provider, requestsPerAddress, admission, address, stop }: Turn,
  facts: Facts,
): Promise<{ join: () => AnswerReader<AnswerPart> } | { cached: string }> {
  const { settings, sources, cache, clock } = ports
  const onFault = (error: unknown): void => {
    ports.log.error({ turn: admission.turn, err: error }, 'the chat could not read what is stored')
  }
  const grounding = await groundingOf(request, sources, address, stop.signal, onFault)
  facts.scope = grounding.scope
  const model = await orStopped(provider.model.name(), stop.signal)
  const key = cacheKey({
    model,
    instructions: INSTRUCTIONS,
    tools: TOOL_DEFINITIONS,
    maxOutputTokens: settings.maxOutputTokens,
    request,
    grounding,
  })
  const cached = key === null ? null : await orStopped(cache.get(key, clock()), stop.signal)
  if (cached) {
    facts.source = 'cache'
    return { cached: cached.text }
  }
  const token = Buffer.from(ports.randomBytes(MARKER_TOKEN_BYTES)).toString('hex')
  const { turn } = admission
  const question = {
    instructions: INSTRUCTIONS,
    input: () => turnInput(request, grounding, token),
    largestBytes: largestInputBytes(request),
    withTools: !admission.degraded,
  }
  const making = {
    ask: (call: ModelCall, signal: AbortSignal) => provider.model.ask(call, signal, turn),
    prices: provider.prices,
    extend: (upTo: MicroUsd) =>
      ports.ledger
        .extend({ turn, upTo, requestsPerAddress, limits: settings.limits })
        .catch((error: unknown) => {
          ports.log.error({ turn, err: error }, 'the reservation of a chat turn could not be extended')
          return false
        }),
    tools: createAgentTools(sources, {
      caller: { address, isChat: true },
      onFault: (_tool, error) => onFault(error),
    }),
    maxOutputTokens: settings.maxOutputTokens,
  }
  const answer = { turn, key, model, tally: facts.tally, prices: provider.prices }
  const join = (): AnswerReader<AnswerPart> => {
    const reader = shared.join(
      key,
      (signal, withdraw) => {
        const make = (within: AbortSignal): AsyncIterable<AnswerPart> =>
          makeAnswer({ ...making, withdraw }, question, facts.tally, within)
        return settledAnswer(ports, answer, make, signal)
      },
      // An answer without tools is for this turn alone; the turn may still be given one that is being made with them.
      { offered: question.withTools, joinableMs: settings.turnMs / 2 },
    )
    facts.source = reader.leads ? 'own' : 'shared'
    return reader
  }
  return { join }
}

async function sendCached(stream: EventStream, text: string, facts: Facts): Promise<Ending> {
  facts.firstDeltaMs = performance.now() - facts.startedAt
  await stream.send('delta', { text })
  return stream.open ? { kind: 'done', usage: { in: 0, out: 0, cached: 0 }, cached: true } : { kind: 'gone' }
}

/**
 * Passes an answer on, part by part, as fast as the reader of the stream takes it.
 *
 * @returns withdrawn where what comes next is for another turn: this one has to join again
 */
async function sendAnswer(
  { stream, stop }: Turn,
  reader: AnswerReader<AnswerPart>,
  openTools: Map<ToolName, number>,
  facts: Facts,
): Promise<Ending | 'withdrawn'> {
  // After what came of another answer, this one is a paragraph of its own.
  let gap = facts.firstDeltaMs === null ? '' : '\n\n'
  stop.signal.addEventListener('abort', () => reader.leave(), { once: true })
  if (stop.signal.aborted) reader.leave()
  for (;;) {
    const part = await reader.next()
    stop.signal.throwIfAborted()
    if (part === null && reader.withdrawn) return 'withdrawn'
    if (part === null) throw new Error('an answer ended without its last part')
    switch (part.kind) {
      case 'done': {
        // What is shared is charged once, to the turn that began it.
        const usage = reader.leads ? part.usage : { in: 0, out: 0, cached: 0 }
        return { kind: 'done', usage, ...(part.degraded ? { degraded: true } : {}) }
      }
      case 'failed':
        return { kind: 'error', ...part.failure }
      case 'tool':
        openTools.set(part.name, (openTools.get(part.name) ?? 0) + (part.status === 'start' ? 1 : -1))
        await orStopped(stream.send('tool', { name: part.name, status: part.status }), stop.signal)
        break
      case 'delta':
        facts.firstDeltaMs ??= performance.now() - facts.startedAt
        await orStopped(stream.send('delta', { text: gap + part.text }), stop.signal)
        gap = ''
    }
  }
}

function endingOf(error: unknown, { stream, stop, admission }: Turn, { log }: AgentPorts): Ending {
  if (!stream.open) return { kind: 'gone' }
  if (stop.timedOut) return { kind: 'error', ...OVERTIME }
  log.error({ turn: admission.turn, err: error }, 'a chat turn failed')
  return { kind: 'error', ...BROKEN }
}

/** The terminal event, after the end of every tool whose start was told. */
function close(
  stream: EventStream,
  ending: Ending,
  openTools: ReadonlyMap<ToolName, number>,
  held: Promise<void> | undefined,
): void {
  if (ending.kind === 'gone') return
  for (const [name, open] of openTools) {
    for (let left = open; left > 0; left -= 1) void stream.send('tool', { name, status: 'done' })
  }
  const { kind, ...payload } = ending
  if (kind === 'done') stream.end('done', payload as AgentEvents['done'], held)
  else stream.end('error', payload as AgentEvents['error'], held)
}

/** A turn that was admitted. */
export interface Turn {
  admission: Admission & { admitted: true }
  request: ChatRequest
  /** Of the caller, canonical. */
  address: string
  provider: NonNullable<AgentPorts['provider']>
  requestsPerAddress: number | null
  stream: EventStream & { body: Readable }
  /** Of the whole turn; the stream's reader leaving aborts it. */
  stop: Stop
  requestId: string
}

/** What is told of a turn in the log, beside its ending. */
interface Facts {
  scope: 'site' | 'item' | null
  source: 'cache' | 'shared' | 'own' | null
  firstDeltaMs: number | null
  tally: Tally
  startedAt: number
}

interface TurnLine extends Record<string, unknown> {
  costMicroUsd: MicroUsd
  durationMs: number
}

/** Ids, counts and durations: nothing that anyone wrote, and nothing of who asked. */
function lineOf(
  { admission, provider, stream, requestId, request }: Turn,
  ending: Ending,
  facts: Facts,
): TurnLine {
  const { tally, startedAt, firstDeltaMs, scope, source } = facts
  const { usage, rounds, calls, text, reserved } = tally
  return {
    requestId,
    turn: admission.turn,
    scope,
    sort: request.sort,
    messages: request.messages.length,
    source,
    degraded: admission.degraded || tally.degraded,
    terminal: ending.kind,
    ...(ending.kind === 'error' ? { error: ending.error, code: ending.code } : {}),
    ...(ending.kind === 'gone' ? { cut: stream.cut } : {}),
    rounds,
    calls,
    characters: text.length,
    usage,
    costMicroUsd: costOfAnswer(tally, provider.prices),
    reservedMicroUsd: reserved,
    firstDeltaMs: firstDeltaMs === null ? null : Math.round(firstDeltaMs),
    durationMs: Math.round(performance.now() - startedAt),
  }
}

/** An answer that is made for a turn. */
interface OwnAnswer {
  /** The turn that pays for it. */
  turn: string
  /** Under which it may be kept; null: it may not. */
  key: string | null
  /** The model that key is of; an answer of another one is not kept under it. */
  model: string
  tally: Tally
  prices: Prices
}

const OVERTIME = { error: 'timeout', code: 'total' } as const
const BROKEN = { error: 'upstream_error', code: 'failed' } as const

/** An answer within the time of a turn, kept where it may be, and charged to the turn that began it on every way out. */
async function* settledAnswer(
  ports: AgentPorts,
  { turn, key, model, tally, prices }: OwnAnswer,
  make: (signal: AbortSignal) => AsyncIterable<AnswerPart>,
  signal: AbortSignal,
): AsyncGenerator<AnswerPart, void> {
  const time = stopAfter(ports.settings.turnMs, signal)
  try {
    yield* make(time.signal)
    // What was said is with the sockets before the stores hold up this thread.
    await nextTurn()
    if (key !== null && tally.whole && tally.keepable && tally.model === model)
      await keep(ports, key, tally.text)
  } catch (error) {
    if (signal.aborted) throw error
    if (!time.timedOut) ports.log.error({ turn, err: error }, 'a chat answer failed')
    yield { kind: 'failed', failure: time.timedOut ? OVERTIME : BROKEN, last: true }
  } finally {
    time.cancel()
    await settle(ports, turn, costOfAnswer(tally, prices))
  }
}

async function keep({ cache, clock, log }: AgentPorts, key: string, text: string): Promise<void> {
  try {
    await cache.put(key, { text, storedAt: clock() })
  } catch (error) {
    // The answer is given; it is only made again next time.
    log.warn({ err: error }, 'a chat answer was not kept')
  }
}

/** Charges a turn. What cannot be written now is charged at what was reserved once the lease of the turn ends. */
async function settle({ ledger, clock, log }: AgentPorts, turn: string, cost: number): Promise<void> {
  try {
    await ledger.settle(turn, cost, clock())
  } catch (error) {
    log.error({ turn, err: error }, 'a chat turn was not settled; the sweep settles it')
  }
}
