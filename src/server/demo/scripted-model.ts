import { setTimeout as pause } from 'node:timers/promises'
import { H3 } from 'h3'
import { DATA_MARKER } from '../../domain/agent/prompt.ts'
import { firstCodePoints } from '../../domain/text.ts'
import { asArray, asJsonObject, parseJsonObject, textOf } from '../../domain/json.ts'
import type { JsonObject } from '../../domain/json.ts'
import { formatInstant } from '../../domain/time.ts'
import { respondJson } from '../respond.ts'

/** Name of the model of the demo's chat. */
export const DEMO_CHAT_MODEL = 'dash-demo'

const HEADERS = { 'x-dash-demo': 'true', 'cache-control': 'no-store' }

/**
 * A provider of chat completions with a script in place of every model, for the demo's chat and its `/v1`.
 *
 * @param deltaMs time between two deltas, so that an answer visibly streams
 */
export function scriptedModelApp(deltaMs = 20): H3 {
  const app = new H3({ silent: true })
  app.post('/chat/completions', async (event) => {
    const body = await event.req.text()
    const request = parseJsonObject(body)
    const messages = objectsOf(request?.['messages'])
    // A routing service tries a list of models in order: here the first one always answers.
    const model = textOf(asArray(request?.['models'])[0] ?? request?.['model'])
    if (model === '' || messages.length === 0)
      return respondJson(event, 400, HEADERS, { error: { code: 400, message: 'no model or no messages' } })
    const { text, call } = completionOf(messages, objectsOf(request?.['tools']))
    const tool_calls = call && [{ index: 0, id: 'call_demo', type: 'function', function: call }]
    const message = { content: text, tool_calls }
    const finish = { finish_reason: call ? 'tool_calls' : 'stop' }
    const [read, written] = [body, text].map(({ length }) => Math.ceil(length / 4)) as [number, number]
    const usage = { prompt_tokens: read, completion_tokens: written, total_tokens: read + written }
    const head = { id: 'chatcmpl-demo', created: 0, model }
    if (request?.['stream'] === true)
      return new Response(ReadableStream.from(chunks(head, message, { ...finish, usage }, deltaMs)), STREAM)
    const choices = [{ index: 0, message: { role: 'assistant', ...message }, ...finish }]
    return respondJson(event, 200, HEADERS, { ...head, object: 'chat.completion', choices, usage })
  })
  return app
}

const STREAM = { headers: { ...HEADERS, 'content-type': 'text/event-stream; charset=utf-8' } }

/** The text in deltas, then the tool calls with the reason of the end and the usage. */
async function* chunks(
  head: object,
  { content, ...calls }: { content: string },
  { usage, ...finish }: { usage: object },
  deltaMs: number,
): AsyncGenerator<Uint8Array> {
  const chunk = (delta: object, end: object, more: object = {}): Uint8Array => {
    const choices = [{ index: 0, delta: { role: 'assistant', ...delta }, ...end }]
    const fields = { ...head, object: 'chat.completion.chunk', choices, ...more }
    return Buffer.from(`data: ${JSON.stringify(fields)}\n\n`)
  }
  for (const [words] of content.matchAll(/(?:\s*\S+){1,5}/g)) {
    await pause(deltaMs)
    yield chunk({ content: words }, { finish_reason: null })
  }
  yield chunk(calls, finish, { usage })
  yield Buffer.from('data: [DONE]\n\n')
}

/** An answer, or the call of a tool with an empty text. */
type Completion = { text: string; call?: { name: string; arguments: string } }

const DATA_BLOCK = new RegExp(`^<<<${DATA_MARKER} \\w+$(.*?)^${DATA_MARKER} \\w+>>>$`, 'ms')

/** Asks which language model to use. */
const ASKS_FOR_MODEL =
  /\b(?:free|which|best) (?:\w+ )?(?:models?|llms?)\b|\b(?:models?|llms?)\b.*\b(?:use|best|recommend\w*)\b|\brecommend\w*\b.*\b(?:models?|llms?)\b/i

/** Names the free model that is asked for, or quotes the open item, else the result of the tool that the question leads to. */
function completionOf(messages: readonly JsonObject[], tools: readonly JsonObject[]): Completion {
  const texts = messages.map(({ content }) => textOf(content))
  const data = parseJsonObject(texts.map((text) => DATA_BLOCK.exec(text)?.[1]).find(Boolean) ?? '')
  const question = texts.findLast((_, at) => messages[at]?.['role'] === 'user') ?? ''
  const asked = question.split(/\n\n|>>>/).at(-1) ?? ''
  const model = asJsonObject(data?.['freeModel'])
  if (model && ASKS_FOR_MODEL.test(asked)) return { text: [NOTICE, modelText(model)].join('\n\n') }
  const item = asJsonObject(data?.['item'])
  if (item) return answer('The open item:', [item], textOf(data?.['text']))
  const { heading, name, args } = listFor(asked)
  const isOffered = tools.some((tool) => asJsonObject(tool['function'])?.['name'] === name)
  const isResult = messages.at(-1)?.['role'] === 'tool'
  if (isOffered && !isResult) return { text: '', call: { name, arguments: JSON.stringify(args) } }
  const result = isResult ? parseJsonObject(texts.at(-1) ?? '') : null
  const day = textOf(result?.['asOfDay'])
  return answer(day === '' ? heading : `Top of the 365 days to ${day}:`, objectsOf(result?.['items']))
}

/** Words of a question that are not its subject. */
const NO_SUBJECT =
  /^(?:about|all|and|any|are|articles?|best|can|did|does|for|from|give|has|have|hello|how|items?|list|mention(?:s|ed|ing)?|more|most|new|news|often|people|popular|said|says?|search|should|show|stor(?:y|ies)|talking|tell|that|the|there|these|they|this|today|top|trend(?:s|ing)|used?|want|was|were|what|when|where|which|who|why|with|yesterday|you|your)$/

/** The Year of a day or the top of a period that a question names, else a search for its longest word, else the top of the day. */
function listFor(question: string): { heading: string; name: string; args: object } {
  const [day] = DAY.exec(question) ?? []
  const dayStart = day === undefined ? NaN : Date.parse(`${day} UTC`)
  if (!Number.isNaN(dayStart)) {
    const args = { period: 'year', list: null, limit: 5, at: formatInstant(dayStart + PUBLISHED_AFTER_MS) }
    return { heading: 'Top of the year:', name: 'get_period_top', args }
  }
  const words = question.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) ?? []
  const period = words.find((word) => /^(?:day|week|month|year)$/.test(word))
  const [query] = words.filter((word) => !NO_SUBJECT.test(word)).toSorted((a, b) => b.length - a.length)
  if (period === undefined && query !== undefined) {
    const args = { query, sources: null, from: null, to: null, limit: 5 }
    return { heading: `Found for “${query}”:`, name: 'search_items', args }
  }
  const args = { period: period ?? 'day', list: null, limit: 5, at: null }
  return { heading: `Top of the ${args.period}:`, name: 'get_period_top', args }
}

/** A day as people write it: `2026-11-20`, `20 November 2026`, `Nov 20, 2026`. */
const DAY = /\b(?:\d{4}-\d\d-\d\d|\d{1,2} [a-z]{3,9} \d{4}|[a-z]{3,9} \d{1,2}, \d{4})\b/i

/** The Year of a day is published within the first hour of the next. */
const PUBLISHED_AFTER_MS = 25 * 3_600_000

const NOTICE =
  '_Demo: a script answers here, not a language model. If a request offers tools, it quotes a top list, or what a search for one word finds._'

function answer(heading: string, items: readonly JsonObject[], excerpt = ''): Completion {
  const lines = items.map((item, index) => `${index + 1}. ${citation(item)}`)
  const list = lines.length === 0 ? 'There is nothing to quote.' : `${heading}\n\n${lines.join('\n')}`
  const quote = excerpt === '' ? '' : `\n\n> ${firstCodePoints(excerpt.replaceAll(/\s+/g, ' '), 400)}`
  return { text: [NOTICE, list].join('\n\n') + quote }
}

/** The recommendation of the data block and what its tests measured. */
function modelText({ name, updatedAt, stale, note, measured }: JsonObject): string {
  if (textOf(name) === '') return textOf(note)
  const { health, toolUse, tasks } = asJsonObject(measured) ?? {}
  const { passed, total } = asJsonObject(tasks) ?? {}
  const facts = [
    ...(health === 'passed' ? ['followed the format'] : []),
    ...(toolUse === 'proven' ? ['called a tool'] : []),
    ...(typeof passed === 'number' && typeof total === 'number'
      ? [`solved ${passed} of ${total} tasks`]
      : []),
  ]
  const reason = facts.length === 0 ? 'it was the best of the free models' : `it ${LIST_FORMAT.format(facts)}`
  const age = stale === true ? ' This test is stale.' : ''
  return `Use **${textOf(name)}**: when tested on ${textOf(updatedAt).slice(0, 10)}, ${reason}.${age}\n\nCompare all: /models`
}

const LIST_FORMAT = new Intl.ListFormat('en-GB')

/** An item as a link with its key, escaped for Markdown. */
function citation({ title, link, key }: JsonObject): string {
  const text = textOf(title).replaceAll(/[[\]\\]/g, String.raw`\$&`)
  const url = textOf(link).replaceAll('(', '%28').replaceAll(')', '%29')
  return `${url === '' ? text : `[${text}](${url})`} (${textOf(key)})`
}

function objectsOf(value: unknown): JsonObject[] {
  return asArray(value).flatMap<JsonObject>((each) => asJsonObject(each) ?? [])
}
