import type { H3Event } from 'h3'
import type { RankedModel, StoredRun } from '../../domain/models/schema.ts'
import type {
  CompletionNeeds,
  CompletionRequest,
  InvalidRequest,
} from '../../domain/v1/completion-request.ts'
import { parseJson } from '../../domain/json.ts'
import { isRefusal } from '../../domain/refusal.ts'
import {
  AUTO_MODELS,
  DASH_MODEL,
  V1_BODY_MAX_BYTES,
  complexityOf,
  parseCompletionRequest,
  selectModels,
} from '../../domain/v1/completion-request.ts'
import type { KeyRefusal } from '../agent/admit-turn.ts'
import { addressOf } from '../callers.ts'
import type { Compute } from '../computed-requests.ts'
import type { ServedRecommendation } from '../models/routes.ts'
import { NO_STORE, respondJson } from '../respond.ts'
import { readBody, route } from '../route.ts'
import type { Route } from '../route.ts'
import { complete } from './complete.ts'
import type { V1Ports } from './complete.ts'
import { V1Limits } from './limits.ts'
import { completionsContract, modelContract, modelsContract, V1Refusal, keyIn } from './contracts.ts'
import type { ListedModel } from './contracts.ts'
import type { AnswerAsDash } from './dash-model.ts'

const MODEL_PATH = '/v1/models/'

/** Keys of this server begin so; they must never reach the routing service. */
const DASH_KEY_PREFIX = 'dck_'

/** The OpenAI-compatible interface (docs/v1.md), mounted only if `DASH_V1` is set. */
export function v1Routes(ports: V1Ports, recommendation: ServedRecommendation, compute: Compute): Route[] {
  const limits = new V1Limits(ports.clock)
  const readRun = (): Promise<StoredRun> => storedRun(recommendation)
  const addressIn = (event: H3Event): string => addressOf(event, ports.trustedProxies)

  /** Verifies the key of a request for the model `dash`. @param isCounted whether the request counts by its address */
  const verified = async (event: H3Event, address: string, isCounted: boolean): ReturnType<AnswerAsDash> => {
    limits.requireFewRejected(address)
    try {
      return await answerAsDash(ports, event)
    } catch (error) {
      // Of wrong keys that were sent together, those beyond the limit are refused here.
      if (isCounted) limits.requireFewRejected(address)
      else limits.countRequest(address)
      if (isRefusal<KeyRefusal>(error, 'invalid_api_key')) limits.countRejectedKey(address)
      throw error
    }
  }

  const completions = async (event: H3Event): Promise<Response> => {
    const key = keyIn(event)
    const address = addressIn(event)
    const isDashKey = key.startsWith(DASH_KEY_PREFIX)
    // A key of this server has its own quota once it is verified; every other request counts by its address.
    const answer = isDashKey && ports.answerAsDash ? await verified(event, address, false) : undefined
    if (answer === undefined) limits.countRequest(address)
    const body = limits.holdBody(address)
    try {
      const text = await readText(event, body.hold)
      const parsed = await compute(event, async () => parseCompletion(text))
      if ('dash' in parsed) return await (answer ?? (await verified(event, address, true)))(parsed.dash)
      if (answer !== undefined) limits.countRequest(address)
      if (isDashKey) throw new V1Refusal('wrong_kind_of_key')
      if ('problem' in parsed) throw invalidRequest(parsed.problem)
      return await complete(event, parsed, { address, key }, { ports, limits, readRun })
    } finally {
      body.end()
    }
  }

  const listed = async (): Promise<ListedModel[]> => {
    const { run, seed } = await recommendation()
    return modelList(run, seed, ports.answerAsDash !== undefined)
  }

  const models = async (event: H3Event): Promise<Response> => {
    limits.countRequest(addressIn(event))
    return respondJson(event, 200, NO_STORE, { object: 'list', data: await listed() })
  }

  const model = async (event: H3Event): Promise<Response> => {
    limits.countRequest(addressIn(event))
    // Clients encode the slash of an id.
    const id = decodeURIComponent(event.url.pathname.slice(MODEL_PATH.length))
    const found = (await listed()).find((each) => each.id === id)
    if (found === undefined) throw new V1Refusal('model_not_found')
    return respondJson(event, 200, NO_STORE, found)
  }

  return [
    route(modelsContract, models),
    route(modelContract, model),
    route(completionsContract, completions),
    otherPaths(),
  ]
}

/** Everything below `/v1` without `DASH_V1`: OpenAI's libraries show no error of another shape. */
export const V1_OFF = otherPaths('/v1 is off on this server; its operator turns it on with DASH_V1=1')

function otherPaths(message?: string): Route {
  const body = new V1Refusal('not_found', message === undefined ? {} : { members: { message } }).body()
  return { path: '/v1/**', handle: async (event) => respondJson(event, 404, NO_STORE, body) }
}

function readText(event: H3Event, hold: (bytes: number) => V1Refusal | null): Promise<string> {
  return readBody(event, V1_BODY_MAX_BYTES, {
    tooLarge: () => new V1Refusal('payload_too_large'),
    malformed: invalidRequest,
    hold,
  })
}

function invalidRequest(message = 'the body is not a JSON object'): V1Refusal {
  return new V1Refusal('invalid_request', { members: { message } })
}

/** Parses the body for the model `dash`, or the request that is passed on. */
function parseCompletion(text: string): { dash: object } | CompletionRequest | InvalidRequest {
  const problem = complexityOf(text)
  if (problem !== null) return { problem }
  const body = parseJson(text.replace(/^\uFEFF/, ''))
  if (typeof body !== 'object' || body === null) throw invalidRequest()
  return 'model' in body && body.model === DASH_MODEL ? { dash: body } : parseCompletionRequest(body)
}

function answerAsDash(ports: V1Ports, event: H3Event): ReturnType<AnswerAsDash> {
  if (ports.answerAsDash) return ports.answerAsDash(event)
  const message = 'the chat of this server is not set up, so that there is no model "dash"'
  throw new V1Refusal('model_not_found', { members: { message } })
}

/** The stored ranking. The built-in seed does not count: its models were never evaluated. */
async function storedRun(recommendation: ServedRecommendation): Promise<StoredRun> {
  const { run, seed } = await recommendation()
  if (seed) throw new V1Refusal('no_ranking')
  return run
}

/** Every model: the chat, the `auto` models, and the ranked ids in order of rank. */
function modelList({ models, updatedAt }: StoredRun, seed: boolean, hasDash: boolean): ListedModel[] {
  const created = Math.floor(Date.parse(updatedAt) / 1000)
  const ranked = seed ? [] : models
  const dash = { id: DASH_MODEL, object: 'model', created, owned_by: 'dash' } as const
  return [
    ...(hasDash ? [dash] : []),
    ...Object.entries(AUTO_MODELS).map(([id, needs]) => ({ ...dash, id, ...contextOf(ranked, id, needs) })),
    ...ranked.map(({ id, contextLength, rank, score, toolUse, checkedAt }) => ({
      id,
      object: 'model' as const,
      created,
      owned_by: id.replace(/\/.*/, ''),
      context_length: contextLength,
      dash: { rank, score, toolUse, checkedAt },
    })),
  ]
}

/** Context of the model that an `auto` model stands for now; empty if no model has its capabilities. */
function contextOf(
  ranked: readonly RankedModel[],
  id: string,
  needs: Partial<CompletionNeeds>,
): { context_length?: number } {
  const selection = selectModels(ranked, id, { tools: false, json: 'none', context: 0, ...needs })
  const [first] = 'models' in selection ? selection.models : []
  return first === undefined ? {} : { context_length: first.contextLength }
}
