import { z } from 'zod'
import type { Catalogue, CatalogueModel } from '../../domain/models/catalogue.ts'
import type { ChatCall, EndpointRecord, RouterFacts } from '../../domain/models/evaluation.ts'
import type { Clock, ModelRouter } from '../../domain/ports.ts'
import { networkReason, Refusal } from '../../domain/refusal.ts'
import { FREE_SUFFIX, MODEL_ID_PATTERN } from '../../domain/models/catalogue.ts'
import type { KeyRequests } from '../../domain/models/quota.ts'
import { publishedText } from '../../domain/models/schema.ts'
import { compareCodeUnits } from '../../domain/text.ts'
import { asJsonObject, parseJsonObject } from '../../domain/json.ts'
import { parseDay } from '../../domain/time.ts'
import { TimeLimitExceeded, flattenHeaders, openHttpClient, readInto } from '../http.ts'
import type { HttpClient, HttpRequest } from '../http.ts'
import { classifyResponse } from './classify.ts'
import type { RouterResponse } from './classify.ts'

export interface RouterOptions {
  /** API base without a trailing slash. The key is sent to this base only. */
  base: string
  key: string | null
  /** Identifies the product to the service: the URL under which it is used. */
  referer: string
  userAgent: string
  clock: Clock
  /** Time limit of a model's whole response, in milliseconds. */
  chatTimeoutMs?: number
}

/** A model that needs longer for a short prompt counts as unavailable. */
const CHAT_TIMEOUT_MS = 90_000
const FACTS_TIMEOUT_MS = 20_000

const CATALOGUE_MAX_BYTES = 32 * 1024 * 1024
const RESPONSE_MAX_BYTES = 1024 * 1024

/**
 * Opens the routing service over HTTP. Chat completions are requested as a whole, not as a stream: the suite grades
 * whole answers and measures the latency of the whole response.
 */
export function openRouter(options: RouterOptions): ModelRouter & { close: () => Promise<void> } {
  const { base, key, clock, chatTimeoutMs = CHAT_TIMEOUT_MS } = options
  const http = openHttpClient({ connect: { timeout: 10_000 } })
  const headers: Record<string, string> = {
    accept: 'application/json',
    'user-agent': options.userAgent,
    'http-referer': options.referer,
    'x-openrouter-title': 'dash',
    ...(key === null ? {} : { authorization: `Bearer ${key}` }),
  }
  const sendRedacted = async (request: RouterRequest, maxBytes: number): Promise<TimedResponse> =>
    redactKey(await send(http, request, maxBytes, clock), key)
  const getFacts = (path: string, signal: AbortSignal, maxBytes = RESPONSE_MAX_BYTES) =>
    sendRedacted({ url: `${base}${path}`, headers, timeoutMs: FACTS_TIMEOUT_MS, signal }, maxBytes)
  return {
    hasKey: key !== null,
    catalogue: async (signal) =>
      toCatalogue(await getFacts('/models', signal, CATALOGUE_MAX_BYTES), `${base}/models`),
    async key(signal) {
      const response = await getFacts('/key', signal)
      return response.status === 200
        ? { facts: parseKeyRequests(response.body) }
        : { failed: classifyResponse(response) }
    },
    endpoints: async (model, signal) =>
      toEndpointRecord(await getFacts(`/models/${pathOf(model)}/endpoints`, signal), model),
    async chat(call, signal) {
      const response = await sendRedacted(
        {
          url: `${base}/chat/completions`,
          // A cached answer would have no latency, and would not describe the model of today.
          headers: { ...headers, 'content-type': 'application/json', 'x-openrouter-cache': 'false' },
          body: JSON.stringify(chatBody(call)),
          timeoutMs: chatTimeoutMs,
          signal,
        },
        RESPONSE_MAX_BYTES,
      )
      return { ...classifyResponse(response), endedAt: response.endedAt, latencyMs: response.latencyMs }
    },
    close: () => http.close(),
  }
}

function toCatalogue({ status, ending, fault, body }: TimedResponse, url: string): Catalogue {
  const advice = 'try again later, or correct OPENROUTER_BASE_URL'
  if (status !== null && status !== 200) throw unavailable(`${url}: responded with ${status}; ${advice}`)
  const why = fault === null ? '' : ` (${fault})`
  if (ending !== 'whole') throw unavailable(`${url}: ${ENDINGS[ending]}${why}; ${advice}`)
  const catalogue = parseCatalogue(body)
  if (catalogue === null) throw unavailable(`${url} is not a model catalogue; correct OPENROUTER_BASE_URL`)
  return catalogue
}

/** How a catalogue ended that is missing or incomplete. */
const ENDINGS: Readonly<Record<Exclude<RouterResponse['ending'], 'whole'>, string>> = {
  timeout: 'no complete response in time',
  unreachable: 'cannot be reached',
  cut: 'the response broke off',
  'too-large': 'the response is larger than 32 MiB',
}

function unavailable(detail: string): Refusal {
  return new Refusal('source_unavailable', detail)
}

/** Converts a response about endpoints. A model unknown to the service has no usable endpoint. */
function toEndpointRecord(response: RouterResponse, model: string): RouterFacts<EndpointRecord> {
  const { status, ending, body, endedAt: checkedAt } = response
  if (status === 401) return { failed: classifyResponse(response) }
  if (status === 404) return { facts: { model, checkedAt, usable: false, latencyMs: null } }
  const health = status === 200 && ending === 'whole' ? parseEndpoints(body) : null
  return { facts: health && { model, checkedAt, ...health } }
}

/** A shorter key is a placeholder for a gateway that has the real one: `-` and `x` occur in ids and answers. */
const SECRET_MIN_LENGTH = 8

/** Removes the key from a response, which may repeat it: previews of responses are published. */
function redactKey(response: TimedResponse, key: string | null): TimedResponse {
  if (key === null || key.length < SECRET_MIN_LENGTH) return response
  const redact = (text: string): string => text.replaceAll(key, '(key)')
  const headers = Object.fromEntries(
    Object.entries(response.headers).map(([name, value]) => [name, redact(value)]),
  )
  return { ...response, headers, body: redact(response.body) }
}

/** Encodes a model id for a path and keeps its slash. */
function pathOf(model: string): string {
  return model.split('/').map(encodeURIComponent).join('/')
}

/**
 * Request body for one model, without fallback models, at a price of zero: the service refuses a request that would
 * cost anything.
 */
function chatBody({ model, prompt, maxTokens, temperature, lowEffort }: ChatCall): Record<string, unknown> {
  const tools = prompt.tools.map((tool) => ({ type: 'function', function: tool }))
  return {
    model,
    messages: prompt.messages,
    ...(tools.length > 0 ? { tools } : {}),
    max_tokens: maxTokens,
    ...(temperature ? { temperature: 0 } : {}),
    ...(lowEffort ? { reasoning: { effort: 'low' } } : {}),
    stream: false,
    provider: { max_price: { prompt: 0, completion: 0 } },
  }
}

type RouterRequest = HttpRequest & { signal: AbortSignal }

interface TimedResponse extends RouterResponse {
  latencyMs: number
  /** Reason why no response came, or no whole one; null for a whole one and after the time limit. */
  fault: string | null
}

/**
 * Sends a request and reads as much of its response as arrives. Redirects are not followed.
 *
 * @throws only the signal's reason: every other failure is reported as the `ending` of the response
 */
async function send(
  http: HttpClient,
  request: RouterRequest,
  maxBytes: number,
  clock: Clock,
): Promise<TimedResponse> {
  const startedAt = performance.now()
  let head: Pick<RouterResponse, 'status' | 'headers'> = { status: null, headers: {} }
  const chunks: Uint8Array[] = []
  let failed: RouterResponse['ending'] | null = null
  let fault: string | null = null
  try {
    await http.exchange(request, async (response) => {
      head = { status: response.statusCode, headers: flattenHeaders(response.headers) }
      await readInto(chunks, response.body, maxBytes)
    })
  } catch (error) {
    request.signal.throwIfAborted()
    if (error instanceof TimeLimitExceeded) failed = 'timeout'
    else [failed, fault] = [head.status === null ? 'unreachable' : 'cut', networkReason(error)]
  }
  const latencyMs = Math.round(performance.now() - startedAt)
  const bytes = Buffer.concat(chunks)
  const ending = failed ?? (bytes.byteLength > maxBytes ? 'too-large' : 'whole')
  const body = new TextDecoder().decode(bytes.subarray(0, maxBytes))
  return { ...head, body, ending, fault, endedAt: clock(), latencyMs }
}

/** Parsers for the routing service's data about models, endpoints and keys. */

const NAME_MAX_LENGTH = 200
const DESCRIPTION_MAX_LENGTH = 2_000

/** Fields of a price step that hold its conditions, not its price. */
const PRICE_CONDITIONS = /(?:^|\.)(?:min|max)_\w*tokens$/

/** A field that is missing or of another type only loses its own value. */
const text = (maxLength: number) =>
  z
    .string()
    .transform((value) => publishedText(value, maxLength))
    .catch('')
const textList = z.array(z.string()).nullable().catch(null)
const tokens = z.int().positive().nullable().catch(null)

const catalogueRow = z.looseObject({
  id: z.string().max(200).regex(MODEL_ID_PATTERN),
  pricing: z.record(z.string(), z.unknown()),
  canonical_slug: z.string().nullable().catch(null),
  name: text(NAME_MAX_LENGTH),
  description: text(DESCRIPTION_MAX_LENGTH),
  created: z.number().positive().lt(1e11).nullable().catch(null),
  context_length: tokens,
  supported_parameters: textList,
})
type Row = z.infer<typeof catalogueRow>

const catalogueSchema = z.looseObject({ data: z.array(z.unknown()) })

/**
 * Parses a catalogue row by row. A row without a usable id or prices is skipped. Of several rows with the same id
 * the first counts.
 *
 * @returns null if the body is not a list of models
 */
export function parseCatalogue(body: string): Catalogue | null {
  const list = catalogueSchema.safeParse(parseJsonObject(body)).data?.data
  if (!list) return null
  const rows = new Map<string, Row>()
  for (const item of list) {
    const { data } = catalogueRow.safeParse(item)
    if (data && !rows.has(data.id)) rows.set(data.id, data)
  }
  const aliases = findAliases([...rows.values()])
  const models = [...rows.values()].map((item) => toModel(item, aliases.has(item.id)))
  return { models, badRows: list.length - models.length }
}

/**
 * Returns the ids of free rows that are aliases of another free row with the same canonical slug, which a paid row
 * may share too. The row named like the slug is the model, otherwise the first by id.
 */
function findAliases(rows: readonly Row[]): Set<string> {
  const bySlug = new Map<string, string[]>()
  for (const { id, canonical_slug: slug } of rows) {
    if (slug === null || !id.endsWith(FREE_SUFFIX)) continue
    const ids = bySlug.get(slug)
    if (ids) ids.push(id)
    else bySlug.set(slug, [id])
  }
  const aliases = [...bySlug].flatMap(([slug, ids]) => {
    const expectedId = `${slug}${FREE_SUFFIX}`
    const model = ids.includes(expectedId) ? expectedId : ids.toSorted(compareCodeUnits)[0]
    return ids.filter((id) => id !== model)
  })
  return new Set(aliases)
}

function toModel(item: Row, isAlias: boolean): CatalogueModel {
  const architecture = asJsonObject(item['architecture']) ?? {}
  const expiry = item['expiration_date'] ?? null
  const expirationDay = typeof expiry === 'string' ? parseDay(expiry.slice(0, 10)) : null
  const topProvider = asJsonObject(item['top_provider']) ?? {}
  return {
    id: item.id,
    name: item.name || item.id,
    createdAt: item.created === null ? null : Math.trunc(item.created * 1000),
    contextLength: smallest(item.context_length, tokens.parse(topProvider['context_length'])),
    maxCompletionTokens: tokens.parse(topProvider['max_completion_tokens']),
    prices: Object.fromEntries(flattenPrices('', item.pricing)),
    inputModalities: textList.parse(architecture['input_modalities']) ?? [],
    outputModalities: textList.parse(architecture['output_modalities']) ?? [],
    supportedParameters: item.supported_parameters ?? [],
    expirationDay,
    expirationUnreadable: expiry !== null && expirationDay === null,
    description: item.description,
    isRouterOrAlias:
      isAlias || architecture['tokenizer'] === 'Router' || (item['alias_target'] ?? null) !== null,
  }
}

/** The context that both the model and its provider take; what one of them leaves out is no limit. */
function smallest(model: number | null, provider: number | null): number | null {
  return model === null || provider === null ? (model ?? provider) : Math.min(model, provider)
}

function flattenPrices(path: string, value: unknown): [string, number | null][] {
  if (typeof value === 'object' && value !== null)
    return Object.entries(value).flatMap(([name, item]) =>
      flattenPrices(path === '' ? name : `${path}.${name}`, item),
    )
  if (PRICE_CONDITIONS.test(path) || value === null) return []
  return [[path, parsePrice(value)]]
}

function parsePrice(value: unknown): number | null {
  if (typeof value === 'number') return Number.isFinite(value) ? value : null
  return typeof value === 'string' && /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(value) ? Number(value) : null
}

const keySchema = z.looseObject({
  data: z.looseObject({
    free_model_daily_requests: z
      .looseObject({ limit: z.number().min(0), used: z.number().min(0) })
      .nullish()
      .catch(null),
  }),
})

/** Parses the daily requests of a key; null if the body has none. */
export function parseKeyRequests(body: string): KeyRequests | null {
  const requests = keySchema.safeParse(parseJsonObject(body)).data?.data.free_model_daily_requests
  return requests ? { limit: Math.floor(requests.limit), used: Math.ceil(requests.used) } : null
}

const endpointsSchema = z.looseObject({
  data: z.looseObject({ endpoints: z.array(z.unknown()) }),
})

const endpoint = z.looseObject({
  status: z.number().nullish().catch(null),
  latency_last_30m: z.looseObject({ p50: z.number().nullish() }).nullish().catch(null),
})

/**
 * Parses a model's endpoints. An endpoint is usable while its status is 0; other values mean degrees of
 * unavailability.
 *
 * @returns null if the body has an unexpected form
 */
export function parseEndpoints(body: string): Pick<EndpointRecord, 'usable' | 'latencyMs'> | null {
  const list = endpointsSchema.safeParse(parseJsonObject(body)).data?.data.endpoints
  if (!list) return null
  const known = list.map((each) => endpoint.safeParse(each).data).filter((each) => each !== undefined)
  const usable = known.filter(({ status }) => (status ?? 0) === 0)
  const medians = usable.flatMap((each) => each.latency_last_30m?.p50 ?? []).filter((median) => median >= 0)
  const latencyMs = medians.length > 0 ? Math.round(Math.min(...medians)) : null
  return { usable: usable.length > 0, latencyMs }
}
