import { setImmediate as nextTick } from 'node:timers/promises'
import type { H3Event } from 'h3'
import { SHORT_WAIT_MS } from '../../domain/agent/budget.ts'
import type { ToolName } from '../../domain/agent/model-call.ts'
import { INSTRUCTIONS, cacheKey, largestInputBytes, turnInput } from '../../domain/agent/prompt.ts'
import { isLast } from '../../domain/agent/schema.ts'
import type { AgentEvent, LastEvent } from '../../domain/agent/schema.ts'
import { TOOL_DEFINITIONS } from '../../domain/agent/tools.ts'
import { openSlots } from '../../domain/fair-queue.ts'
import type { Callers } from '../callers.ts'
import { requestId, respondStream } from '../respond.ts'
import { TURN_MESSAGE } from '../route.ts'
import { abortable } from '../single-flight.ts'
import { admitTurn, checkRequest, rateLimited } from './admit-turn.ts'
import type { AdmittedTurn } from './admit-turn.ts'
import { Tally, makeAnswer } from './answer.ts'
import type { AnswerPorts, Prompt } from './answer.ts'
import { AnswerStream } from './answer-stream.ts'
import type { Ending } from './answer-stream.ts'
import { groundingOf } from './grounding.ts'
import type { AgentPorts } from './service.ts'
import { SharedAnswers, Stopped } from './shared-answers.ts'
import type { SharedAnswer } from './shared-answers.ts'
import { runCall } from './tools.ts'

/** The turns of a server. */
export interface Turns {
  /** Answers a chat request: every check in the documented order, then the stream of the answer. */
  begin: (event: H3Event) => Promise<Response>
  /** Resolves when every turn that was begun is over and settled; to be asked once nothing new can come. */
  settled: () => Promise<void>
  /** Ends every open turn as one that is out of time, and those that still begin; resolves when they are settled. */
  endTurns: () => Promise<void>
}

/** Share of a server's streams that one network may hold. */
const NETWORK_SHARE = 1 / 4

const TOO_MANY_STREAMS = { admitted: false, scope: 'ip', retryAfterSeconds: SHORT_WAIT_MS / 1000 } as const

/** A stream that no proxy may keep, change or hold back. */
const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
}

export function openTurns(ports: AgentPorts, callers: Callers): Turns {
  const { pingMs, turnMs, limits } = ports.settings
  // Quotas count the turns of all networks, in the store that servers share.
  const most = Math.max(1, Math.floor(limits.maxOpenTurns * NETWORK_SHARE))
  const places = openSlots({ perAddress: most, perNetwork: most, all: Infinity })
  const answers = new SharedAnswers(turnMs)
  const open = new Map<Promise<void>, AbortController>()
  let isEnding = false
  const settled = async (): Promise<void> => void (await Promise.all(open.keys()))

  return {
    settled,
    async begin(event) {
      const checked = await checkRequest(ports, callers, event)
      const { address } = checked
      if (places.enter(address) !== 'admitted') throw rateLimited(ports, TOO_MANY_STREAMS)
      // A refusal leaves the place. A crash after the admission: the sweep charges what is reserved.
      const admitted = await admitTurn(ports, checked).catch((error: unknown) => {
        places.leave(address)
        throw error
      })
      const stop = new AbortController()
      const timer = setTimeout(() => stop.abort(new Stopped('time')), turnMs)
      const onGone = (): void => stop.abort(new Stopped('left'))
      const stream = new AnswerStream({ pingMs, response: event.runtime?.node?.res, onGone })
      const turn: Turn = {
        ...admitted,
        stream,
        signal: stop.signal,
        requestId: requestId(event.req.headers),
        startedAt: performance.now(),
        scope: null,
        source: null,
        firstDeltaMs: null,
        openTool: null,
        answer: null,
        tally: new Tally(admitted.admission.reserved),
      }
      void stream.send({ event: 'meta', data: { remaining: admitted.admission.remaining, tier: 'free' } })
      const over = runTurn(ports, answers, turn).finally(() => {
        clearTimeout(timer)
        open.delete(over)
        places.leave(address)
      })
      open.set(over, stop)
      if (isEnding) stop.abort(new Stopped('ending'))
      return respondStream(event, { ...callers.headersFor(event), ...STREAM_HEADERS }, stream.body)
    },
    async endTurns() {
      isEnding = true
      for (const stop of open.values()) stop.abort(new Stopped('ending'))
      await settled()
    },
  }
}

/** A turn whose stream is open, and what is known of it so far. */
interface Turn extends AdmittedTurn {
  stream: AnswerStream
  /** Aborted with a {@link Stopped}. */
  signal: AbortSignal
  requestId: string
  startedAt: number
  scope: 'site' | 'item' | null
  source: 'cache' | 'shared' | 'own' | null
  firstDeltaMs: number | null
  /** The tool whose start its reader was sent, and not yet its end. */
  openTool: ToolName | null
  /** The answer it reads. */
  answer: SharedAnswer | null
  /** Of the answer it began. */
  tally: Tally
}

/**
 * An admitted turn from the first event behind `meta` to its line in the log
 * (docs/decisions/0030-chat-streaming-and-shared-answers.md): exactly one last event unless the reader has left, one settlement. Never
 * throws.
 */
async function runTurn(ports: AgentPorts, answers: SharedAnswers, turn: Turn): Promise<void> {
  const { stream, signal } = turn
  ports.meter.streaming()
  let last: LastEvent | null = null
  try {
    // `meta` is with the socket before anything else takes time.
    await nextTick()
    last = await answerTurn(ports, answers, turn)
  } catch (error) {
    last = lastEventOf(error, turn, ports)
  }
  if (!stream.open) last = null
  // A crash before the settlement: the sweep charges what is reserved once the lease has ended.
  const settled = settlementOf(ports, turn)
  if (turn.openTool) void stream.send({ event: 'tool', data: { name: turn.openTool, status: 'done' } })
  // A server that ends closes the connections whose answers have ended: not before their money is settled.
  const isEnding = whyStopped(signal) === 'ending'
  if (last) stream.end(last, isEnding ? settled : undefined)
  await settled
  report(ports, turn, last)
}

/**
 * Reads what the turn stands on, then sends the kept answer, or reads the one being made, or begins it. An abort before that
 * costs nothing; afterwards what was sent and received until then, unless others read on.
 */
async function answerTurn(ports: AgentPorts, answers: SharedAnswers, turn: Turn): Promise<LastEvent | null> {
  const { request, provider, address, stream, signal } = turn
  const { settings, sources, cache, clock } = ports
  const { maxOutputTokens } = settings
  const onFault = (err: unknown): void =>
    ports.log.error({ turn: turn.admission.turn, err }, 'the chat could not read what is stored')
  const grounding = await groundingOf(request, sources, address, signal, onFault)
  turn.scope = grounding.scope
  const model = await abortable(provider.model.name(), signal)
  const shaping = { model, instructions: INSTRUCTIONS, tools: TOOL_DEFINITIONS, maxOutputTokens }
  const key = cacheKey({ ...shaping, request, grounding })
  const kept = key === null ? null : await abortable(cache.get(key, clock()), signal)
  if (kept) {
    turn.source = 'cache'
    turn.firstDeltaMs = performance.now() - turn.startedAt
    await stream.send({ event: 'delta', data: { text: kept.text } })
    return { event: 'done', data: { usage: NO_USAGE, cached: true } }
  }
  const token = Buffer.from(ports.randomBytes(MARKER_TOKEN_BYTES)).toString('hex')
  const prompt = {
    instructions: INSTRUCTIONS,
    input: () => turnInput(request, grounding, token),
    largestBytes: largestInputBytes(request),
    withTools: !turn.admission.degraded,
  }
  const caller = { address, isChat: true }
  const runTool: AnswerPorts['runTool'] = (call, maxBytes, callSignal) =>
    runCall(call, sources, { caller, maxBytes, onFault: (_tool, error) => onFault(error) }, callSignal)
  const asked = { key, model, prompt, runTool }
  for (;;) {
    // An answer without tools is for this turn alone; the turn may still be given one that is being made with them.
    const answer = answers.join(key, prompt.withTools, (answerSignal, withdraw) =>
      chargedAnswer(ports, turn, asked, answerSignal, withdraw),
    )
    turn.answer = answer
    turn.source = answer.leads ? 'own' : 'shared'
    const last = await sendAnswer(turn, answer)
    if (last) return last
  }
}

/** Bytes of the token that marks where a turn's stored data ends. */
const MARKER_TOKEN_BYTES = 16

const NO_USAGE = { in: 0, out: 0, cached: 0 }

/**
 * Passes an answer on, event by event, as fast as the reader of the stream takes it.
 *
 * @returns the last event; null where what comes next is for another turn: this one has to join again
 */
async function sendAnswer(turn: Turn, answer: SharedAnswer): Promise<LastEvent | null> {
  const { stream, signal } = turn
  // After what came of another answer, this one is a paragraph of its own.
  let gap = turn.firstDeltaMs === null ? '' : '\n\n'
  for await (const event of answer.read(signal)) {
    if (isLast(event)) return answer.leads || event.event === 'error' ? event : unpaid(event)
    let sent: AgentEvent = event
    if (event.event === 'tool') turn.openTool = event.data.status === 'start' ? event.data.name : null
    if (event.event === 'delta') {
      turn.firstDeltaMs ??= performance.now() - turn.startedAt
      sent = { event: 'delta', data: { text: gap + event.data.text } }
      gap = ''
    }
    await abortable(stream.send(sent), signal)
  }
  return null
}

/** What is shared is charged once, to the turn that began it. */
function unpaid({ event, data }: LastEvent & { event: 'done' }): LastEvent {
  return { event, data: { ...data, usage: NO_USAGE } }
}

/** What the answer of a turn is made of, and under which key and name it may be kept. */
interface Asked {
  /** null: it may not. */
  key: string | null
  /** The model that key is of; an answer of another one is not kept under it. */
  model: string
  prompt: Prompt
  runTool: AnswerPorts['runTool']
}

/** An answer, kept where it may be, and charged to the turn that began it on every way out. */
async function* chargedAnswer(
  ports: AgentPorts,
  turn: Turn,
  { key, model, prompt, runTool }: Asked,
  signal: AbortSignal,
  withdraw: () => void,
): AsyncGenerator<AgentEvent, void> {
  const { provider, tally } = turn
  const { maxOutputTokens } = ports.settings
  try {
    const ask: AnswerPorts['ask'] = (call, callSignal) =>
      provider.model.ask(call, callSignal, turn.admission.turn)
    const reserve = (upTo: number): Promise<boolean> => extend(ports, turn, upTo)
    const answerPorts = { ask, prices: provider.prices, extend: reserve, withdraw, runTool, maxOutputTokens }
    yield* makeAnswer(answerPorts, prompt, tally, signal)
    // What was said is with the sockets before the stores hold up this thread.
    await nextTick()
    if (key !== null && tally.isWhole && tally.isKeepable && tally.model === model)
      await keep(ports, key, tally.text)
  } catch (error) {
    const isOvertime = whyStopped(signal) === 'time'
    if (signal.aborted && !isOvertime) throw error
    if (!isOvertime) ports.log.error({ turn: turn.admission.turn, err: error }, 'a chat answer failed')
    yield isOvertime ? OVERTIME : BROKEN
  } finally {
    await settle(ports, turn.admission.turn, tally.cost(provider.prices))
  }
}

const OVERTIME: LastEvent = { event: 'error', data: { error: 'timeout', code: 'total' } }
const BROKEN: LastEvent = { event: 'error', data: { error: 'upstream_error', code: 'failed' } }

function whyStopped({ reason }: AbortSignal): Stopped['why'] | null {
  return reason instanceof Stopped ? reason.why : null
}

/** The last event of a turn that something broke off. */
function lastEventOf(error: unknown, { admission, signal, stream }: Turn, { log }: AgentPorts): LastEvent {
  if (signal.aborted) return OVERTIME
  if (stream.open) log.error({ turn: admission.turn, err: error }, 'a chat turn failed')
  return BROKEN
}

async function extend({ ledger, settings, log }: AgentPorts, turn: Turn, upTo: number): Promise<boolean> {
  const { admission, requestsPerAddress } = turn
  try {
    return await ledger.extend({ turn: admission.turn, upTo, requestsPerAddress, limits: settings.limits })
  } catch (error) {
    log.error({ turn: admission.turn, err: error }, 'the reservation of a chat turn could not be extended')
    return false
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

/** Over once the turn is charged: by the answer that it began, or with nothing. */
async function settlementOf(ports: AgentPorts, { admission, answer }: Turn): Promise<void> {
  if (answer?.leads) return answer.made.catch(() => undefined)
  await nextTick()
  await settle(ports, admission.turn, 0)
}

/** Charges a turn. What cannot be written now is charged at what was reserved once the lease of the turn ends. */
async function settle({ ledger, clock, log }: AgentPorts, turn: string, cost: number): Promise<void> {
  try {
    await ledger.settle(turn, cost, clock())
  } catch (error) {
    log.error({ turn, err: error }, 'a chat turn was not settled; the sweep settles it')
  }
}

/** One line in the log, and the same in numbers: nothing that anyone wrote, and nothing of who asked. */
function report({ log, meter }: AgentPorts, turn: Turn, last: LastEvent | null): void {
  const { request, stream, tally, source, scope, firstDeltaMs } = turn
  const ending: Ending =
    last === null
      ? { kind: 'gone' }
      : last.event === 'error'
        ? { kind: 'error', ...last.data }
        : { kind: 'done' }
  const durationMs = Math.round(performance.now() - turn.startedAt)
  const costMicroUsd = tally.cost(turn.provider.prices)
  const { kind: terminal, ...failure } = ending
  const line = {
    requestId: turn.requestId,
    turn: turn.admission.turn,
    scope,
    sort: request.sort,
    messages: request.messages.length,
    source,
    degraded: turn.admission.degraded || tally.degraded,
    terminal,
    ...failure,
    ...(terminal === 'gone' ? { cut: stream.cut } : {}),
    rounds: tally.rounds,
    calls: tally.calls,
    characters: tally.text.length,
    usage: tally.usage,
    costMicroUsd,
    reservedMicroUsd: tally.reserved,
    firstDeltaMs: firstDeltaMs === null ? null : Math.round(firstDeltaMs),
    durationMs,
  }
  log.info(line, TURN_MESSAGE)
  // A shared answer is charged to the turn that began it.
  meter.ended({ ending, source, firstDeltaMs, durationMs, costMicroUsd: source === 'own' ? costMicroUsd : 0 })
}
