import { setImmediate as nextTick } from 'node:timers/promises'
import type { H3Event } from 'h3'
import { SHORT_WAIT_MS } from '../../domain/agent/admission.ts'
import type { ToolName } from '../../domain/agent/model-call.ts'
import { INSTRUCTIONS, cacheKey, largestInputBytes, turnInput } from '../../domain/agent/prompt.ts'
import { isLastEvent } from '../../domain/agent/schema.ts'
import type { LastEvent } from '../../domain/agent/schema.ts'
import { TOOL_DEFINITIONS } from '../../domain/agent/tools.ts'
import { OpenSlots } from '../fair-queue.ts'
import { requestId } from '../respond.ts'
import { TURN_MESSAGE } from '../route.ts'
import { abortable } from '../single-flight.ts'
import { admitTurn, rateLimited } from './admit-turn.ts'
import type { AdmittedTurn, CheckedRequest } from './admit-turn.ts'
import { NO_USAGE, Tally, generateAnswer } from './answer.ts'
import type { AnswerPorts } from './answer.ts'
import type { AnswerOutput, OpenOutput, TurnOutcome } from './answer-stream.ts'
import { readGrounding } from './grounding.ts'
import type { AgentPorts } from './service.ts'
import { runCall } from './tools.ts'

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

/** Shares of a server's streams that one network and one IPv6 /32 may hold. */
const NETWORK_SHARE = 1 / 4
const REGION_SHARE = 1 / 2

const TOO_MANY_STREAMS = { admitted: false, scope: 'ip', retryAfterSeconds: SHORT_WAIT_MS / 1000 } as const

export function openTurns(ports: AgentPorts): Turns {
  const { pingMs, turnMs, limits } = ports.settings
  // The shared quota store limits the turns of all networks together.
  const most = (share: number): number => Math.max(1, Math.floor(limits.maxOpenTurns * share))
  const [perNetwork, perRegion] = [most(NETWORK_SHARE), most(REGION_SHARE)]
  const slots = new OpenSlots({ perAddress: perNetwork, perNetwork, perRegion, all: Infinity })
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
      const timer = setTimeout(() => controller.abort(), turnMs)
      const onDisconnect = (): void => controller.abort()
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
        cacheKey: null,
        firstDeltaMs: null,
        openTool: null,
        tally: new Tally(admitted.admission.reserved),
      }
      void stream.send({ event: 'meta', data: { remaining: admitted.admission.remaining, tier: 'free' } })
      const finished = runTurn(ports, turn).finally(() => {
        clearTimeout(timer)
        runningTurns.delete(finished)
        slots.leave(address)
      })
      runningTurns.set(finished, controller)
      if (isShuttingDown) controller.abort()
      return stream.respond(event, headers)
    },
    async endTurns() {
      isShuttingDown = true
      for (const controller of runningTurns.values()) controller.abort()
      await settled()
    },
  }
}

/** A turn whose stream is open, and its state. */
interface Turn extends AdmittedTurn {
  stream: AnswerOutput
  /** Aborted when the client disconnects, when the time of the turn is over, and on shutdown. */
  signal: AbortSignal
  requestId: string
  startedAt: number
  scope: 'site' | 'item' | null
  source: 'cache' | 'own' | null
  firstDeltaMs: number | null
  /** The tool whose start was sent to the client and whose end was not. */
  openTool: ToolName | null
  /** Digest that the answer is cached under; null until it is known, or if the answer must not be cached. */
  cacheKey: string | null
  tally: Tally
}

/**
 * Runs an admitted turn from the first event after `meta` to its log line: one terminal event unless the client
 * disconnected, and one settlement. Never throws.
 */
async function runTurn(ports: AgentPorts, turn: Turn): Promise<void> {
  const { stream, signal, admission } = turn
  ports.meter.recordStart()
  let last: LastEvent | null = null
  try {
    // Let `meta` reach the socket before the slow part.
    await nextTick()
    last = await answerTurn(ports, turn)
  } catch (error) {
    last = signal.aborted ? TIMED_OUT : FAILED
    if (!signal.aborted) ports.log.error({ turn: admission.turn, err: error }, 'a chat turn failed')
  }
  if (!stream.isOpen) last = null
  // After a crash before the settlement, the sweep charges the reservation when the lease expires.
  const settled = settleTurn(ports, turn)
  if (turn.openTool) void stream.send({ event: 'tool', data: { name: turn.openTool, status: 'done' } })
  if (last) stream.end(last)
  await settled
  report(ports, turn, last)
}

/**
 * Reads the grounding, then sends the cached answer or one of the model. An abort before the model call costs nothing;
 * later it costs what was sent and received.
 */
async function answerTurn(ports: AgentPorts, turn: Turn): Promise<LastEvent> {
  const { request, provider, stream, signal } = turn
  const { turn: id, degraded } = turn.admission
  const { settings, sources, cache, clock } = ports
  const { maxOutputTokens } = settings
  const onFault = (err: unknown): void =>
    ports.log.error({ turn: id, err }, 'the chat could not read the stored data')
  const grounding = await readGrounding(request, sources, signal, onFault)
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
  turn.source = 'own'
  const token = Buffer.from(ports.randomBytes(MARKER_TOKEN_BYTES)).toString('hex')
  const prompt = {
    instructions: INSTRUCTIONS,
    input: () => turnInput(request, grounding, token),
    maxInputBytes: largestInputBytes(request),
    withTools: !degraded,
  }
  const answerPorts: AnswerPorts = {
    ask: (call, callSignal) => provider.model.ask(call, callSignal, id),
    prices: provider.prices,
    reserveUpTo: (upTo) =>
      ports.ledger
        .extend({ turn: id, upTo, requestsPerAddress: turn.requestsPerAddress, limits: settings.limits })
        .catch((err: unknown) => {
          ports.log.error({ turn: id, err }, 'the reservation of a chat turn could not be extended')
          return false
        }),
    runTool: (call, maxBytes, callSignal) =>
      runCall(
        call,
        sources,
        { group: 'chat', maxBytes, onFault: (_tool, error) => onFault(error) },
        callSignal,
      ),
    maxOutputTokens,
  }
  const last = await sendAnswer(turn, generateAnswer(answerPorts, prompt, turn.tally, signal))
  // An answer by another model must not be cached under the key of this one.
  if (turn.tally.model === model) turn.cacheKey = key
  return last
}

/** Length of the random token that marks the end of a turn's stored data, in bytes. */
const MARKER_TOKEN_BYTES = 16

/** Sends an answer event by event, as fast as the client reads; resolves to its terminal event. */
async function sendAnswer(turn: Turn, answer: ReturnType<typeof generateAnswer>): Promise<LastEvent> {
  const { stream, signal } = turn
  for await (const event of answer) {
    if (isLastEvent(event)) return event
    if (event.event === 'tool') turn.openTool = event.data.status === 'start' ? event.data.name : null
    if (event.event === 'delta') turn.firstDeltaMs ??= performance.now() - turn.startedAt
    await abortable(stream.send(event), signal)
  }
  throw new Error('an answer ended without a final event')
}

const TIMED_OUT: LastEvent = { event: 'error', data: { error: 'timeout', code: 'total' } }
const FAILED: LastEvent = { event: 'error', data: { error: 'upstream_error', code: 'failed' } }

/**
 * Caches a complete answer and charges the turn, after its last event has reached the socket. If the charge cannot be
 * written, the sweep charges the reservation when the lease expires.
 */
async function settleTurn({ cache, ledger, clock, log }: AgentPorts, turn: Turn): Promise<void> {
  const { cacheKey: key, tally, provider, admission } = turn
  // The stores block this thread.
  await nextTick()
  if (key !== null && tally.isComplete && tally.isCacheable)
    await cache
      .put(key, { text: tally.text, storedAt: clock() })
      .catch((err: unknown) => log.warn({ err }, 'a chat answer could not be cached'))
  await ledger
    .settle(admission.turn, tally.cost(provider.prices), clock())
    .catch((err: unknown) =>
      log.error({ turn: admission.turn, err }, 'a chat turn was not settled; the next sweep settles it'),
    )
}

/** Logs a turn in one line and counts it, without any text of the conversation or data of the caller. */
function report({ log, meter }: AgentPorts, turn: Turn, last: LastEvent | null): void {
  const { request, tally, source, scope, firstDeltaMs } = turn
  const outcome: TurnOutcome =
    last === null
      ? { kind: 'gone' }
      : last.event === 'error'
        ? { kind: 'error', ...last.data }
        : { kind: 'done' }
  const durationMs = Math.round(performance.now() - turn.startedAt)
  const costMicroUsd = tally.cost(turn.provider.prices)
  const { kind: terminal, ...failure } = outcome
  const isUnreachable = outcome.kind === 'error' && outcome.code === 'connect'
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
    ...(isUnreachable ? { engine: turn.provider.url } : {}),
    rounds: tally.rounds,
    calls: tally.calls,
    characters: tally.text.length,
    usage: tally.usage,
    costMicroUsd,
    reservedMicroUsd: tally.reserved,
    firstDeltaMs: firstDeltaMs === null ? null : Math.round(firstDeltaMs),
    durationMs,
  }
  log[isUnreachable ? 'warn' : 'info'](line, TURN_MESSAGE)
  meter.recordEnd({ outcome, source, firstDeltaMs, durationMs, costMicroUsd })
}
