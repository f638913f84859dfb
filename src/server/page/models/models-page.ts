import { BASE_URL } from '../../../domain/models/catalogue.ts'
import { DEFAULT_DAILY_LIMIT, MINUTE_LIMIT } from '../../../domain/models/quota.ts'
import { shortTokens } from '../../../domain/models/ranking.ts'
import type { RankedModel, TopModels, StoredRun } from '../../../domain/models/schema.ts'
import { parseShortlistQuery, topModelsPayload, NEED_NAMES, NEEDS } from '../../../domain/models/shortlist.ts'
import type { ServedRun } from '../../../domain/models/shortlist.ts'
import { trackRecords } from '../../../domain/models/history.ts'
import { dayOf } from '../../../domain/time.ts'
import type { Instant } from '../../../domain/time.ts'
import { modelChangesContract } from '../../models/changes-feed.ts'
import { FREE_MODELS_DOCS, topModelsContract, topModelsCsvContract } from '../../models/routes.ts'
import { alternateElements, givenParams, linkedFeeds, subscribeLine } from '../feed-rule.ts'
import { NOTHING, ageOf, formatCounted, html, copyable, formatCount, instantOf, shellText } from '../html.ts'
import type { Html } from '../html.ts'
import { withQuery } from '../layout.ts'
import type { PageQuery } from '../layout.ts'
import type { View } from '../rendered-pages.ts'
import { refusalsOf, section } from '../sections.ts'
import type { Section, SectionPage, SectionRefusal } from '../sections.ts'
import {
  FILTERS,
  INVALID_SORT,
  MODELS_PATH,
  NEED_TITLES,
  SORT_PARAM,
  filterForm,
  formatResult,
  modelsTable,
  parseSort,
  shortlistParamsOf,
} from './models-table.ts'

/** Parameters of the page that the home page accepts too. */
export const MODEL_PARAMS: readonly string[] = [...FILTERS, 'model']

/** URL of the list for the parameters of the list on the home page; null without any. */
export function modelsAddress({ params }: PageQuery): string | null {
  const ofList = givenParams(params, MODEL_PARAMS)
  return ofList.size > 0 ? `${MODELS_PATH}?${String(ofList)}` : null
}

/** `/models`: the recommended model with its reasons, the shortlist with the filters of its interface, and how to call a model. */
export const MODELS_PAGE: SectionPage = {
  path: MODELS_PATH,
  query: { known: [...MODEL_PARAMS, SORT_PARAM] },
  render: async (view) => ({
    title: 'Free models · dash',
    head: alternateElements(CHANGES_FEEDS, 'dash, changes of the free models'),
    sections: [await modelsSection(view)],
  }),
}

function modelsSection(view: View): Promise<Section | null> {
  const { sources, now, query, frame } = view
  return section(view, { id: 'models', title: 'Free models', headingLevel: 1, refusalOf }, async () => {
    const shortlistParams = shortlistParamsOf(query.params)
    const shortlist = parseShortlistQuery(shortlistParams)
    const sort = parseSort(query)
    const current = await sources.recommendation()
    const list = topModelsPayload(current, shortlist, now)
    const modelParam = query.params.get('model')
    const chosen =
      modelParam === null ? list.models[0] : current.run.models.find(({ id }) => id === modelParam)
    const form = filterForm(shortlist.filter, query, `${list.count} of ${current.run.models.length} models`)
    if (list.count === 0)
      return html`<p class="empty">No model meets this filter.</p>
        ${form} ${usageSection(chosen, modelParam, current.run, frame.demo)}`
    const records = await readRecords(view)
    const isOverall = list.models[0]?.id === current.run.models[0]?.id
    return html`${recommendation(list, current, now)}
    ${isOverall && !list.seed ? confidence(list, now) : NOTHING} ${form}
    ${modelsTable(list.models, { chosen: chosen?.id ?? null, sort, untested: current.run.untested ?? [], records, query })}
    ${records === null ? RECORDS_UNREADABLE : NOTHING}
    ${usageSection(chosen, modelParam, current.run, frame.demo)} ${aboutRanking(list, shortlistParams)}`
  })
}

const refusalOfList = refusalsOf(topModelsContract, { invalid_sort: INVALID_SORT })

/** A refusal; one of a bad parameter has the form for another filter. */
function refusalOf(error: unknown, { query }: View): SectionRefusal {
  const refusal = refusalOfList(error)
  if (refusal.status !== 400) return refusal
  return {
    ...refusal,
    help: filterForm(parseShortlistQuery(new URLSearchParams()).filter, query, 'all models'),
  }
}

/** The tests of the last days by model; null if the stored runs cannot be read. */
async function readRecords({ sources, now, log }: View): Promise<ReturnType<typeof trackRecords> | null> {
  try {
    const runs = await sources.runs()
    return trackRecords(
      runs.flatMap(({ run }) => run ?? []),
      dayOf(now),
    )
  } catch (err) {
    log.error({ err }, 'the stored runs cannot be read')
    return null
  }
}

const RECORDS_UNREADABLE = html`<p class="as-of">The tests of the last days cannot be read.</p>`

/** The first model of a list in sentences: which model to use and why. */
function recommendation(
  { models: [first], seed, stale, updatedAt, baseUrl }: TopModels,
  { run: { untested = [], models }, isUnreadable = false }: ServedRun,
  now: Instant,
): Html {
  if (!first) return NOTHING
  const link = html`<strong
    ><a href="${withQuery(MODELS_PATH, { model: first.id })}#call"><bdi>${first.name}</bdi></a></strong
  >`
  if (seed)
    return html`<p class="recommendation">
      ${isUnreadable ? 'The stored recommendation cannot be read' : 'Nothing was measured here yet'}. The
      built-in list stands in, ordered by published facts; its first
      model${first.id === models[0]?.id ? '' : ' that meets the filter'} is ${link}.
    </p>`
  const measured = measuredFacts(first, !untested.includes(first.id))
  const sentence = measured.length > 0 ? html` It ${enumerated(measured)}` : NOTHING
  const context = html`<a href="${MEANINGS.context}">${shortTokens(first.contextLength)} context</a>`
  const terms = [context, ...(baseUrl === BASE_URL ? [LIMITS] : [])]
  return html`${stale ? html`<p class="notice">Stale: last updated ${ageOf(Date.parse(updatedAt), now)}.</p>` : NOTHING}
    <p class="recommendation">
      Use
      ${link}${stale ? NOTHING : ' today'}.${sentence}${terms.map((term, index) =>
        index === 0 && measured.length === 0 ? html` It has ${term}` : html`; ${term}`,
      )}.
    </p>`
}

const LIST = new Intl.ListFormat('en-GB')

/** Joins phrases: `one, two and three`. */
function enumerated(phrases: readonly Html[]): Html {
  return { html: LIST.format(phrases.map((phrase) => phrase.html)) }
}

const MEANINGS = {
  format: '/docs/lite-suite#grading',
  tasks: '/docs/lite-suite',
  tool: '/docs/free-models#queries',
  context: '/docs/model-scores#the-metadata-score',
  limits: '/docs/model-errors#quota',
}

/** What a model did when it was tested, as ends of a sentence; nothing for what was not tested. */
function measuredFacts(model: RankedModel, tested: boolean): Html[] {
  const { toolUse, evalSummary } = model
  const { status, passed, total, cacheAgeDays } = evalSummary
  const answered = formatResult(model, tested)
  const called = { proven: 'called a tool', disproven: 'called no tool', unknown: undefined }[toolUse]
  const age = cacheAgeDays === undefined ? '' : ` ${formatCounted(cacheAgeDays, 'days')} ago`
  const solved = status === 'not_evaluated' ? undefined : `solved ${passed} of ${total} tasks${age}`
  const facts = [
    [answered.mark === null ? undefined : answered.text, MEANINGS.format],
    [called, MEANINGS.tool],
    [solved, MEANINGS.tasks],
  ] as const
  return facts.flatMap(([text, href]) => (text === undefined ? [] : [html`<a href="${href}">${text}</a>`]))
}

/** The limits of an account of the routing service itself; another base URL may have others. */
const LIMITS = html`<a href="${MEANINGS.limits}"
  >${MINUTE_LIMIT} requests a minute, ${DEFAULT_DAILY_LIMIT} a day without credits</a
>`

function confidence(
  { rankingConfidence, rankingConfidenceReason, updatedAt }: TopModels,
  now: Instant,
): Html {
  return html`<details class="notes">
    <summary>${CONFIDENCES[rankingConfidence]}, updated ${ageOf(Date.parse(updatedAt), now)}</summary>
    <p>${rankingConfidenceReason}</p>
  </details>`
}

const CONFIDENCES: Readonly<Record<TopModels['rankingConfidence'], string>> = {
  high: 'High confidence',
  medium: 'Medium confidence',
  low: 'Low confidence',
}

const CHANGES_FEEDS = linkedFeeds([modelChangesContract])

function aboutRanking({ notes, rankingVersion }: TopModels, shortlistParams: URLSearchParams): Html {
  const query = shortlistParams.size > 0 ? `?${shortlistParams.toString()}` : ''
  return html`<details class="notes">
    <summary>About this ranking</summary>
    <ul>
      ${notes.map((text) => html`<li><bdi>${text}</bdi></li>`)}
    </ul>
    <p>
      Ranking <code>${rankingVersion}</code> · <a href="${topModelsContract.path}${query}">JSON</a> ·
      <a href="${topModelsCsvContract.path}${query}">CSV</a> ·
      <a href="${FREE_MODELS_DOCS}">API reference</a>
    </p>
    ${subscribeLine(CHANGES_FEEDS, 'the changes of this list')}
  </details>`
}

/** How to call a model, open if the address names it, and all facts about it. */
function usageSection(
  chosen: RankedModel | undefined,
  modelParam: string | null,
  { baseUrl, createKeyUrl }: StoredRun,
  demo: boolean,
): Html {
  if (!chosen) {
    if (modelParam === null) return NOTHING
    return html`<p class="notice">The model <code>${modelParam}</code> is not in the current list.</p>`
  }
  const key = demo
    ? html`<p>
        A scripted model that this server answers for while the demo runs. Any text works as the key:
        <code>export OPENROUTER_API_KEY=demo</code>
      </p>`
    : html`<p>
        Set <code>OPENROUTER_API_KEY</code> to a key from
        <a href="${createKeyUrl}" rel="noopener noreferrer">the routing service</a>:
      </p>`
  return html`<details class="call" id="call" ${modelParam === null ? NOTHING : html`open`}>
    <summary>
      <h2>Call <bdi>${chosen.name}</bdi></h2>
    </summary>
    ${key} ${snippets(baseUrl, chosen.id)} ${factsOf(chosen)}
  </details>`
}

/** The claims of the catalogue about a model, and the parts of its score. */
function factsOf(model: RankedModel): Html {
  const { id, contextLength, maxCompletionTokens, rank, checkedAt } = model
  const claims = NEED_NAMES.filter((need) => model[NEEDS[need]]).map((need) => NEED_TITLES[need])
  const facts = [
    ['Id', id],
    ['Context', formatCounted(contextLength, 'tokens')],
    [
      'Longest answer',
      maxCompletionTokens === null ? 'unknown' : formatCounted(maxCompletionTokens, 'tokens'),
    ],
    ['Claims', claims.length > 0 ? claims.join(', ') : 'none'],
    ['Last check', checkedAt === null ? 'none' : instantOf(Date.parse(checkedAt))],
    [`Score, rank ${rank}`, scoreText(model)],
  ] as const
  return html`<dl class="model-facts">
    ${facts.map(
      ([name, value]) =>
        html`<div>
          <dt>${name}</dt>
          <dd><bdi>${value}</bdi></dd>
        </div>`,
    )}
  </dl>`
}

function scoreText(model: RankedModel): string {
  const { score, metadataScore, healthScore, latencyScore, liteEvalScore, instabilityPenalty } = model
  const parts = `published facts ${metadataScore}, health ${healthScore}, response time ${latencyScore}, tasks ${liteEvalScore}`
  return `${formatCount(score)}: ${parts}${instabilityPenalty > 0 ? `, failures −${instabilityPenalty}` : ''}`
}

const EXAMPLE_PROMPT = 'Say hello in one word.'

/** Snippets that send a prompt to a model, one of which is shown. The key is read from the environment. */
export function snippets(baseUrl: string, model: string): Html {
  const snippetTexts: readonly (readonly [id: string, title: string, text: string])[] = [
    ['curl', 'curl', curl(baseUrl, model)],
    ['python', 'Python', python(baseUrl, model)],
    ['javascript', 'JavaScript', javascript(baseUrl, model)],
  ]
  return html`<div class="choices" role="group" aria-label="Language of the line">
    ${snippetTexts.map(
      ([id, title], index) =>
        html`<input
            type="radio"
            name="language"
            id="language-${id}"
            ${index === 0 ? html`checked` : NOTHING}
          /><label for="language-${id}">${title}</label>`,
    )}
    ${snippetTexts.map(([id, title, text]) =>
      copyable({
        id: `snippet-${id}`,
        caption: `With ${title}`,
        copiedThing: `the line for ${title}`,
        text,
      }),
    )}
  </div>`
}

function curl(baseUrl: string, model: string): string {
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: EXAMPLE_PROMPT }] })
  const headers = `-H "Authorization: Bearer $OPENROUTER_API_KEY" -H 'Content-Type: application/json'`
  return `curl -s ${shellText(`${baseUrl}/chat/completions`)} ${headers} -d ${shellText(body)}`
}

/** Uses the `openai` package. */
function python(baseUrl: string, model: string): string {
  const client = `OpenAI(base_url=${codeText(baseUrl)}, api_key=os.environ["OPENROUTER_API_KEY"])`
  const messages = `[{"role": "user", "content": ${codeText(EXAMPLE_PROMPT)}}]`
  const create = `chat.completions.create(model=${codeText(model)}, messages=${messages})`
  return `import os; from openai import OpenAI; print(${client}.${create}.choices[0].message.content)`
}

function javascript(baseUrl: string, model: string): string {
  const headers =
    '{ Authorization: `Bearer ${process.env.OPENROUTER_API_KEY}`, "Content-Type": "application/json" }'
  const body = `JSON.stringify({ model: ${codeText(model)}, messages: [{ role: "user", content: ${codeText(EXAMPLE_PROMPT)} }] })`
  const fetchCall = `await fetch(${codeText(`${baseUrl}/chat/completions`)}, { method: "POST", headers: ${headers}, body: ${body} })`
  return `console.log((await (${fetchCall}).json()).choices[0].message.content)`
}

/** A string literal of both Python and JavaScript, in ASCII, so that every editor shows it unchanged. */
function codeText(text: string): string {
  return JSON.stringify(text).replaceAll(
    /[\u007f-\uffff]/g,
    (unit) => String.raw`\u` + unit.charCodeAt(0).toString(16).padStart(4, '0'),
  )
}
