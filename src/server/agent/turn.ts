import { setImmediate as nextTick } from 'node:timers/promises'
import type { H3Event } from 'h3'
import { SHORT_WAIT_MS } from '../../domain/agent/budget.ts'
import type { ToolName } from '../../domain/agent/model-call.ts'
import { INSTRUCTIONS, cacheKey, largestInputBytes, turnInput } from '../../domain/agent/prompt.ts'
import { isLastEvent } from '../../domain/agent/schema.ts'
import type { AgentEvent, LastEvent } from '../../domain/agent/schema.ts'
import { TOOL_DEFINITIONS } from '../../domain/agent/tools.ts'
import { openSlots } from '../../domain/fair-queue.ts'
import { requestId } from '../respond.ts'
import { TURN_MESSAGE } from '../route.ts'
import { abortable } from '../single-flight.ts'
import { admitTurn, rateLimited } from './admit-turn.ts'
import type { AdmittedTurn, CheckedRequest } from './admit-turn.ts'
import { NO_USAGE, Tally, generateAnswer } from './answer.ts'
import type { AnswerPorts, Prompt } from './answer.ts'
import type { AnswerOutput, OpenOutput, TurnOutcome } from './answer-stream.ts'
import { readGrounding } from './grounding.ts'
import type { AgentPorts } from './service.ts'
import { SharedAnswers, TurnAborted } from './shared-answers.ts'
import type { SharedAnswer } from './shared-answers.ts'
import { runCall } from './tools.ts'

/** The turns of a server. */
export interface Turns {
  /**
   * Admits a checked request, and answers it through an output.
   *
   * @param headers of the response, besides those of the output
   * @throws Refusal as `admitTurn`, and for a caller with too many open answers
   */
  handle: (
    event: H3Event,
    checked: CheckedRequest,
    open: OpenOutput,
    headers: Readonly<Record<string, string>>,
  ) => Promise<Response>
  /** Resolves when every started turn is settled; call it when no new turn can start. */
  settled: () => Promise<void>
  /** Ends every open turn, and every turn that still starts, with a timeout error; resolves when they are settled. */
  endTurns: () => Promise<void>
}

/** Share of a server's streams that one network may hold. */
const NETWORK_SHARE = 1 / 4

const TOO_MANY_STREAMS = { admitted: false, scope: 'ip', retryAfterSeconds: SHORT_WAIT_MS / 1000 } as const

export function openTurns(ports: AgentPorts): Turns {
  const { pingMs, turnMs, limits } = ports.settings
  // The shared quota store limits the turns of all networks together.
  const maxPerNetwork = Math.max(1, Math.floor(limits.maxOpenTurns * NETWORK_SHARE))
  const slots = openSlots({ perAddress: maxPerNetwork, perNetwork: maxPerNetwork, all: Infinity })
  const answers = new SharedAnswers(turnMs)
  const runningTurns = new Map<Promise<void>, AbortController>()
  let isShuttingDown = false
  const settled = async (): Promise<void> => void (await Promise.all(runningTurns.keys()))

  return {
    settled,
    async handle(event, checked, open, headers) {
      const { address } = checked
      if (slots.enter(address) !== 'admitted') throw rateLimited(ports, TOO_MANY_STREAMS)
      // Free the slot after a refusal. After a crash, the sweep charges the reservation.
      const admitted = await admitTurn(ports, checked).catch((error: unknown) => {
        slots.leave(address)
        throw error
      })
      const controller = new AbortController()
      const timer = setTimeout(() => controller.abort(new TurnAborted('time')), turnMs)
      const onDisconnect = (): void => controller.abort(new TurnAborted('left'))
      const { turn: id } = admitted.admission
      const stream = open({ pingMs, socket: event.runtime?.node?.res, onDisconnect }, id)
      const turn: Turn = {
        ...admitted,
        stream,
        signal: controller.signal,
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
      const finished = runTurn(ports, answers, turn).finally(() => {
        clearTimeout(timer)
        runningTurns.delete(finished)
        slots.leave(address)
      })
      runningTurns.set(finished, controller)
      if (isShuttingDown) controller.abort(new TurnAborted('ending'))
      return stream.respond(event, headers)
    },
    async endTurns() {
      isShuttingDown = true
      for (const controller of runningTurns.values()) controller.abort(new TurnAborted('ending'))
      await settled()
    },
  }
}

/** A turn whose stream is open, and its state. */
interface Turn extends AdmittedTurn {
  stream: AnswerOutput
  /** Aborted with a {@link TurnAborted}. */
  signal: AbortSignal
  requestId: string
  startedAt: number
  scope: 'site' | 'item' | null
  source: 'cache' | 'shared' | 'own' | null
  firstDeltaMs: number | null
  /** The tool whose start was sent to the client and whose end was not. */
  openTool: ToolName | null
  /** The answer that this turn reads. */
  answer: SharedAnswer | null
  /** Consumption of the answer that this turn started. */
  tally: Tally
}

/**
 * Runs an admitted turn from the first event after `meta` to its log line
 * (docs/decisions/0030-chat-streaming-and-shared-answers.md): one terminal event unless the client disconnected, and one
 * settlement. Never throws.
 */
async function runTurn(ports: AgentPorts, answers: SharedAnswers, turn: Turn): Promise<void> {
  const { stream, signal } = turn
  ports.meter.recordStart()
  let last: LastEvent | null = null
  try {
    // Let `meta` reach the socket before the slow part.
    await nextTick()
    last = await answerTurn(ports, answers, turn)
  } catch (error) {
    last = lastEventOf(error, turn, ports)
  }
  if (!stream.isOpen) last = null
  // After a crash before the settlement, the sweep charges the reservation when the lease expires.
  const settled = settlementOf(ports, turn)
  if (turn.openTool) void stream.send({ event: 'tool', data: { name: turn.openTool, status: 'done' } })
  // On shutdown the server closes connections whose responses have ended, so hold the response until the turn is settled.
  const isShuttingDown = abortReason(signal) === 'ending'
  if (last) stream.end(last, isShuttingDown ? settled : undefined)
  await settled
  report(ports, turn, last)
}

/**
 * Reads the grounding, then sends the cached answer, joins one that is being generated, or starts one. An abort before
 * the model call costs nothing; later it costs what was sent and received, unless other turns read on.
 */
async function answerTurn(ports: AgentPorts, answers: SharedAnswers, turn: Turn): Promise<LastEvent | null> {
  const { request, provider, address, stream, signal } = turn
  const { settings, sources, cache, clock } = ports
  const { maxOutputTokens } = settings
  const onFault = (err: unknown): void =>
    ports.log.error({ turn: turn.admission.turn, err }, 'the chat could not read the stored data')
  const grounding = await readGrounding(request, sources, address, signal, onFault)
  turn.scope = grounding.scope
  const model = await abortable(provider.model.name(), signal)
  const shaping = { model, instructions: INSTRUCTIONS, tools: TOOL_DEFINITIONS, maxOutputTokens }
  const key = cacheKey({ ...shaping, request, grounding })
  const cached = key === null ? null : await abortable(cache.get(key, clock()), signal)
  if (cached) {
    turn.source = 'cache'
    turn.firstDeltaMs = performance.now() - turn.startedAt
    await stream.send({ event: 'delta', data: { text: cached.text } })
    return { event: 'done', data: { usage: NO_USAGE, cached: true } }
  }
  const token = Buffer.from(ports.randomBytes(MARKER_TOKEN_BYTES)).toString('hex')
  const prompt = {
    instructions: INSTRUCTIONS,
    input: () => turnInput(request, grounding, token),
    maxInputBytes: largestInputBytes(request),
    withTools: !turn.admission.degraded,
  }
  const caller = { address, isChat: true }
  const runTool: AnswerPorts['runTool'] = (call, maxBytes, callSignal) =>
    runCall(call, sources, { caller, maxBytes, onFault: (_tool, error) => onFault(error) }, callSignal)
  const plan = { key, model, prompt, runTool }
  for (;;) {
    // An answer without tools is not shared, but this turn may join one that has tools.
    const answer = answers.join(key, prompt.withTools, (answerSignal, stopSharing) =>
      chargedAnswer(ports, turn, plan, answerSignal, stopSharing),
    )
    turn.answer = answer
    turn.source = answer.isLeader ? 'own' : 'shared'
    const last = await sendAnswer(turn, answer)
    if (last) return last
  }
}

/** Length of the random token that marks the end of a turn's stored data, in bytes. */
const MARKER_TOKEN_BYTES = 16

/**
 * Sends an answer event by event, as fast as the client reads.
 *
 * @returns the terminal event; null if sharing stopped and the turn must join again
 */
async function sendAnswer(turn: Turn, answer: SharedAnswer): Promise<LastEvent | null> {
  const { stream, signal } = turn
  // Text after a previous answer starts a new paragraph.
  let separator = turn.firstDeltaMs === null ? '' : '\n\n'
  for await (const event of answer.read(signal)) {
    if (isLastEvent(event)) return answer.isLeader || event.event === 'error' ? event : withoutUsage(event)
    let sent: AgentEvent = event
    if (event.event === 'tool') turn.openTool = event.data.status === 'start' ? event.data.name : null
    if (event.event === 'delta') {
      turn.firstDeltaMs ??= performance.now() - turn.startedAt
      sent = { event: 'delta', data: { text: separator + event.data.text } }
      separator = ''
    }
    await abortable(stream.send(sent), signal)
  }
  return null
}

/** Removes the usage: a shared answer is charged once, to the turn that started it. */
function withoutUsage({ event, data }: LastEvent & { event: 'done' }): LastEvent {
  return { event, data: { ...data, usage: NO_USAGE } }
}

/** The inputs of a turn's answer, and the key it is cached under. */
interface AnswerPlan {
  /** Null if the answer must not be cached. */
  key: string | null
  /** The model of the key; an answer by another model is not cached under it. */
  model: string
  prompt: Prompt
  runTool: AnswerPorts['runTool']
}

/** Generates an answer, caches it if possible, and in every case charges the turn that started it. */
async function* chargedAnswer(
  ports: AgentPorts,
  turn: Turn,
  { key, model, prompt, runTool }: AnswerPlan,
  signal: AbortSignal,
  stopSharing: () => void,
): AsyncGenerator<AgentEvent, void> {
  const { provider, tally } = turn
  const { maxOutputTokens } = ports.settings
  try {
    const ask: AnswerPorts['ask'] = (call, callSignal) =>
      provider.model.ask(call, callSignal, turn.admission.turn)
    const reserveUpTo = (upTo: number): Promise<boolean> => extend(ports, turn, upTo)
    const answerPorts = { ask, prices: provider.prices, reserveUpTo, stopSharing, runTool, maxOutputTokens }
    yield* generateAnswer(answerPorts, prompt, tally, signal)
    // Let the events reach the sockets before the stores block this thread.
    await nextTick()
    if (key !== null && tally.isComplete && tally.isCacheable && tally.model === model)
      await cacheAnswer(ports, key, tally.text)
  } catch (error) {
    const isTimeout = abortReason(signal) === 'time'
    if (signal.aborted && !isTimeout) throw error
    if (!isTimeout) ports.log.error({ turn: turn.admission.turn, err: error }, 'a chat answer failed')
    yield isTimeout ? TIMED_OUT : FAILED
  } finally {
    await settle(ports, turn.admission.turn, tally.cost(provider.prices))
  }
}

const TIMED_OUT: LastEvent = { event: 'error', data: { error: 'timeout', code: 'total' } }
const FAILED: LastEvent = { event: 'error', data: { error: 'upstream_error', code: 'failed' } }

function abortReason({ reason }: AbortSignal): TurnAborted['reason'] | null {
  return reason instanceof TurnAborted ? reason.reason : null
}

/** The terminal event of a turn that failed or was aborted. */
function lastEventOf(error: unknown, { admission, signal, stream }: Turn, { log }: AgentPorts): LastEvent {
  if (signal.aborted) return TIMED_OUT
  if (stream.isOpen) log.error({ turn: admission.turn, err: error }, 'a chat turn failed')
  return FAILED
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

async function cacheAnswer({ cache, clock, log }: AgentPorts, key: string, text: string): Promise<void> {
  try {
    await cache.put(key, { text, storedAt: clock() })
  } catch (error) {
    // The answer was sent; it is generated again next time.
    log.warn({ err: error }, 'a chat answer could not be cached')
  }
}

/** Resolves when the turn is charged: by the answer it started, or with nothing. */
async function settlementOf(ports: AgentPorts, { admission, answer }: Turn): Promise<void> {
  if (answer?.isLeader) return answer.finished.catch(() => undefined)
  await nextTick()
  await settle(ports, admission.turn, 0)
}

/** Charges a turn. If the write fails, the sweep charges the reservation when the lease expires. */
async function settle({ ledger, clock, log }: AgentPorts, turn: string, cost: number): Promise<void> {
  try {
    await ledger.settle(turn, cost, clock())
  } catch (error) {
    log.error({ turn, err: error }, 'a chat turn was not settled; the next sweep settles it')
  }
}

/** Logs a turn in one line and counts it, without any text of the conversation or data of the caller. */
function report({ log, meter }: AgentPorts, turn: Turn, last: LastEvent | null): void {
  const { request, stream, tally, source, scope, firstDeltaMs } = turn
  const outcome: TurnOutcome =
    last === null
      ? { kind: 'gone' }
      : last.event === 'error'
        ? { kind: 'error', ...last.data }
        : { kind: 'done' }
  const durationMs = Math.round(performance.now() - turn.startedAt)
  const costMicroUsd = tally.cost(turn.provider.prices)
  const { kind: terminal, ...failure } = outcome
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
    ...(terminal === 'gone' ? { cut: stream.wasCut } : {}),
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
  // A shared answer is charged to the turn that started it.
  meter.recordEnd({
    outcome,
    source,
    firstDeltaMs,
    durationMs,
    costMicroUsd: source === 'own' ? costMicroUsd : 0,
  })
}
