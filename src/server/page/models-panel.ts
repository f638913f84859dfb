import type { RankedModel, StoredRun, TopModels } from '../../domain/models/schema.ts'
import { NEED_NAMES, NEEDS, parseShortlistQuery, topModelsPayload } from '../../domain/models/shortlist.ts'
import type { ShortlistFilter } from '../../domain/models/shortlist.ts'
import type { Instant } from '../../domain/time.ts'
import { modelChangesContract } from '../models/changes-feed.ts'
import { topModelsContract } from '../models/routes.ts'
import { alternateElements, linkedFeeds, subscribeLine } from './feed-rule.ts'
import { NOTHING, ageOf, copyable, formatCounted, formatCount, html, shellText } from './html.ts'
import type { Html } from './html.ts'
import type { PageQuery } from './layout.ts'
import type { View } from './rendered-pages.ts'
import { refusalsOf, section } from './sections.ts'
import type { Section, SectionPage } from './sections.ts'

const FILTERS = ['needs', 'minContext', 'health'] as const
export const MODEL_PARAMS: readonly string[] = [...FILTERS, 'model']

/** Path of the page of the free models. */
const MODELS_PATH = '/models'

/** The recommended model on the home page, in one sentence. */
export function modelsSummary(view: View): Promise<Section | null> {
  return section(view, MODELS, async () => {
    const list = topModelsPayload(await view.sources.recommendation(), ALL_MODELS, view.now)
    return html`${recommendation(list, view.now)}
      <p><a href="${MODELS_PATH}">All free models and how to call them</a></p>`
  })
}

/** URL of the list for the parameters of the list on the home page; null without any. */
export function modelsAddress({ params }: PageQuery): string | null {
  const ofList = new URLSearchParams([...params].filter(([name]) => MODEL_PARAMS.includes(name)))
  return ofList.size > 0 ? `${MODELS_PATH}?${String(ofList)}` : null
}

const MODELS = { id: 'models', title: 'Free models', refusalOf: refusalsOf(topModelsContract) }

const ALL_MODELS = parseShortlistQuery(new URLSearchParams())

/** The first model of a list in one sentence, with a warning if it is not measured or stale. */
function recommendation({ models: [first], seed, stale, updatedAt }: TopModels, now: Instant): Html {
  if (!first) return NOTHING
  const age = ageOf(Date.parse(updatedAt), now)
  const warning = seed
    ? html`<p class="notice">Built-in seed: no recommendation is stored, so nothing here was measured.</p>`
    : stale
      ? html`<p class="notice">Stale: last evaluated ${age}.</p>`
      : NOTHING
  const facts = seed ? NOTHING : html`: ${joined([health(first), tools(first), lite(first)])}`
  return html`${warning}
    <p class="recommendation">
      Use
      <strong
        ><a href="${MODELS_PATH}?${modelQuery(first.id)}"><bdi>${first.name}</bdi></a></strong
      >
      today${facts}.
    </p>`
}

function modelQuery(id: string): string {
  return String(new URLSearchParams({ model: id }))
}

function joined(parts: readonly Html[]): Html {
  return html`${parts.map((part, index) => html`${index === 0 ? NOTHING : ', '}${part}`)}`
}

/** Context lengths of the filter, in tokens. */
const CONTEXTS = [32_768, 131_072, 262_144, 1_000_000]

const NEED_TITLES: Readonly<Record<(typeof NEED_NAMES)[number], string>> = {
  tools: 'tools',
  toolChoice: 'tool choice',
  structured: 'structured outputs',
  responseFormat: 'response format',
  reasoning: 'reasoning',
  seed: 'seed',
  stop: 'stop',
}

/** `/models`: the shortlist with the filters of its interface and snippets for the chosen model. */
export const MODELS_PAGE: SectionPage = {
  path: MODELS_PATH,
  query: { known: MODEL_PARAMS },
  render: async (view) => ({
    title: 'Free models · dash',
    head: alternateElements(CHANGES_FEEDS, 'dash, changes of the free models'),
    sections: [await shortlistSection(view)],
  }),
}

function shortlistSection(view: View): Promise<Section | null> {
  const { sources, now, query, frame } = view
  return section(view, { ...MODELS, headingLevel: 1 }, async () => {
    const shortlistParams = shortlistParamsOf(query.params)
    const shortlist = parseShortlistQuery(shortlistParams)
    const current = await sources.recommendation()
    const list = topModelsPayload(current, shortlist, now)
    const modelParam = query.params.get('model')
    const chosen =
      modelParam === null ? list.models[0] : current.run.models.find(({ id }) => id === modelParam)
    return html`${rankingSummary(list, now)} ${filterForm(shortlist.filter, query)}
      <p class="as-of">
        ${list.count} of ${current.run.models.length} ranked models ·
        <a href="/api/free-llm/top-models${shortlistParams.size > 0 ? `?${shortlistParams.toString()}` : ''}"
          >JSON</a
        >
        · <a href="/docs/api/free-llm">API reference</a>
      </p>
      ${subscribeLine(CHANGES_FEEDS, 'the changes of this list')}
      ${
        list.count > 0
          ? modelsTable(list.models, chosen?.id ?? null, query)
          : html`<p class="empty">No ranked model passes these filters.</p>`
      }
      ${usageSection(chosen, modelParam, current.run, frame.demo)} ${notes(list.notes)}`
  })
}

const CHANGES_FEEDS = linkedFeeds([modelChangesContract])

/**
 * Converts the page's query to one of `top-models`: a form sends `needs` once per checkbox, the interface takes one
 * list.
 */
function shortlistParamsOf(params: URLSearchParams): URLSearchParams {
  const shortlistParams = new URLSearchParams(
    [...params].filter(([name]) => name === 'minContext' || name === 'health'),
  )
  const needs = params.getAll('needs')
  if (needs.length > 0) shortlistParams.set('needs', needs.join(','))
  return shortlistParams
}

function rankingSummary(list: TopModels, now: Instant): Html {
  const { rankingConfidence, rankingConfidenceReason, updatedAt, rankingVersion } = list
  return html`${recommendation(list, now)}
    <p>
      <strong>${rankingConfidence} confidence</strong>: ${rankingConfidenceReason}
      <span class="as-of">Ranking <code>${rankingVersion}</code>, ${ageOf(Date.parse(updatedAt), now)}.</span>
    </p>`
}

function filterForm({ needs, minContext, passedOnly }: ShortlistFilter, query: PageQuery): Html {
  const contexts =
    minContext === null || CONTEXTS.includes(minContext)
      ? CONTEXTS
      : [...CONTEXTS, minContext].sort((a, b) => a - b)
  return html`<form class="filters" action="${MODELS_PATH}" method="get" aria-label="Filter models">
    <fieldset>
      <legend>Must support</legend>
      ${NEED_NAMES.map(
        (need) =>
          html`<label
            ><input
              type="checkbox"
              id="filter-${need}"
              name="needs"
              value="${need}"
              ${needs.includes(need) ? html`checked` : NOTHING}
            />
            ${NEED_TITLES[need]}</label
          >`,
      )}
    </fieldset>
    <label
      >Context of at least
      <select id="filter-context" name="minContext">
        <option value="">any length</option>
        ${contexts.map(
          (tokens) =>
            html`<option value="${tokens}" ${tokens === minContext ? html`selected` : NOTHING}>
              ${formatCounted(tokens, 'tokens')}
            </option>`,
        )}
      </select></label
    >
    <label
      ><input
        type="checkbox"
        id="filter-health"
        name="health"
        value="passed"
        ${passedOnly ? html`checked` : NOTHING}
      />
      answered as requested</label
    >
    <button type="submit">Filter</button>
    ${query.sectionLink('models', { needs: null, minContext: null, health: null, model: null }, 'All models')}
  </form>`
}

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
  return html`<h2>Ask <bdi>${chosen.name}</bdi></h2>
    ${
      demo
        ? html`<p>
            A scripted model that this server answers for while the demo runs. Any text works as the key:
            <code>export OPENROUTER_API_KEY=demo</code>
          </p>`
        : html`<p>
            Set <code>OPENROUTER_API_KEY</code> to a key from
            <a href="${createKeyUrl}" rel="noopener noreferrer">the routing service</a>:
          </p>`
    }
    ${snippets(baseUrl, chosen.id)}`
}

function notes(texts: readonly string[]): Html {
  if (texts.length === 0) return NOTHING
  return html`<details class="notes">
    <summary>Notes on this ranking (${texts.length})</summary>
    <ul>
      ${texts.map((text) => html`<li><bdi>${text}</bdi></li>`)}
    </ul>
  </details>`
}

/** The explicit roles replace those that the elements lose when CSS turns rows into cards on a narrow screen. */
function modelsTable(models: readonly RankedModel[], chosen: string | null, query: PageQuery): Html {
  return html`<table class="models" role="table">
    <caption class="unseen">
      Free models, best first: measured results and catalogue claims
    </caption>
    <thead role="rowgroup">
      <tr role="row">
        ${['Rank', 'Model', 'Measured', 'Claimed', 'Score'].map(
          (title) => html`<th scope="col" role="columnheader">${title}</th>`,
        )}
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${models.map((model) => row(model, model.id === chosen, query))}
    </tbody>
  </table>`
}

function row(model: RankedModel, isChosen: boolean, query: PageQuery): Html {
  const { rank, previousRank, id, name, reason } = model
  const previousRankNote =
    previousRank === null || previousRank === rank ? NOTHING : html` <small>was ${previousRank}</small>`
  return html`<tr role="row" ${isChosen ? html`class="chosen"` : NOTHING}>
    <td role="cell" class="rank">${rank}${previousRankNote}</td>
    <th scope="row" role="rowheader">
      ${query.sectionLink(
        'models',
        { model: id },
        html`<bdi>${name}</bdi>`,
        isChosen ? html`aria-current="true"` : NOTHING,
      )}
      <code>${id}</code>
      <small><bdi>${reason}</bdi></small>
    </th>
    <td role="cell" data-title="Measured">${measured(model)}</td>
    <td role="cell" data-title="Claimed">${claimed(model)}</td>
    <td role="cell" data-title="Score" class="score">${score(model)}</td>
  </tr>`
}

const HEALTH: Readonly<Record<string, string>> = {
  passed: 'answered as requested',
  imperfect: 'ignored the requested format',
  not_probed: 'not tested',
  timeout: 'did not answer in time',
  failed: 'failed',
}

function measured(model: RankedModel): Html {
  return html`<ul class="marks">
    ${[health(model), tools(model), lite(model)].map((fact) => html`<li>${fact}</li>`)}
  </ul>`
}

function health({ healthStatus, latencyMs }: RankedModel): Html {
  return html`${HEALTH[healthStatus] ?? html`<code>${healthStatus}</code>`}${
    latencyMs === null ? NOTHING : html` in ${formatCount(latencyMs)} ms`
  }`
}

function tools({ toolUse, supportsTools }: RankedModel): Html {
  if (toolUse === 'proven') return html`<span class="good">✓ used a tool</span>`
  if (toolUse === 'unknown') return html`tool use not measured`
  const text = supportsTools ? '✕ claims tools, used none' : 'used no tool'
  return html`<span class="${supportsTools ? 'bad' : ''}">${text}</span>`
}

function lite({ evalSummary: { status, passed, total, cacheAgeDays } }: RankedModel): Html {
  const age = cacheAgeDays === undefined ? '' : `, ${formatCounted(cacheAgeDays, 'days')} old`
  return status === 'not_evaluated'
    ? html`no lite evaluation`
    : html`lite evaluation ${passed}/${total}${age}`
}

/** Claims of the catalogue about a model, by the names of the filters. */
function claimed(model: RankedModel): Html {
  const { contextLength, maxCompletionTokens } = model
  const claims = NEED_NAMES.filter((need) => model[NEEDS[need]]).map((need) => NEED_TITLES[need])
  const output = maxCompletionTokens === null ? NOTHING : html`, ${formatCount(maxCompletionTokens)} out`
  return html`${formatCount(contextLength)} tokens${output}
    <small>${claims.length > 0 ? claims.join(', ') : 'no capabilities'}</small>`
}

function score(model: RankedModel): Html {
  const { metadataScore, healthScore, latencyScore, liteEvalScore, instabilityPenalty } = model
  return html`<strong>${formatCount(model.score)}</strong>
    <small
      >metadata ${metadataScore}, health ${healthScore}, latency ${latencyScore}, lite
      ${liteEvalScore}${instabilityPenalty > 0 ? html`, instability −${instabilityPenalty}` : NOTHING}</small
    >`
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
