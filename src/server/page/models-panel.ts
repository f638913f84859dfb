import { topModelsPayload } from '../../domain/models/payloads.ts'
import type { RankedModel, StoredRun, TopModels } from '../../domain/models/schema.ts'
import { NEED_NAMES, parseShortlistQuery } from '../../domain/models/shortlist-query.ts'
import type { ShortlistFilter } from '../../domain/models/shortlist-query.ts'
import type { Instant } from '../../domain/time.ts'
import { topModelsContract } from '../models/contracts.ts'
import type { ServedRecommendation } from '../models/served-recommendation.ts'
import { counted } from './counts.ts'
import { html, NOTHING } from './html.ts'
import type { Html } from './html.ts'
import { modelsTable } from './models-table.ts'
import type { PageQuery } from './page-query.ts'
import { refusalsOf } from './panel.ts'
import type { Panel } from './panel.ts'
import { snippets } from './snippets.ts'
import { ageOf } from './times.ts'

const FILTERS = ['needs', 'minContext', 'health'] as const

/** Context lengths to choose from, in tokens. */
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

/** The shortlist of free models with the filters of its interface, and how to ask the chosen one. */
export function modelsPanel(served: ServedRecommendation, demo: boolean): Panel {
  return {
    id: 'models',
    title: 'Free models',
    params: [...FILTERS, 'model'],
    refusalOf: refusalsOf(topModelsContract),
    async render({ now, query }) {
      const asked = questionOf(query.params)
      const shortlist = parseShortlistQuery(asked)
      const current = await served()
      const list = topModelsPayload(current, shortlist, now)
      const wanted = query.params.get('model')
      const chosen = wanted === null ? list.models[0] : current.run.models.find(({ id }) => id === wanted)
      return html`${standing(list, now)} ${filterForm(shortlist.filter, query)}
        <p class="as-of">
          ${list.count} of ${current.run.models.length} ranked models ·
          <a href="/api/free-llm/top-models${asked.size > 0 ? `?${asked.toString()}` : ''}">JSON</a> ·
          <a href="/docs/api/free-llm">the interface</a> · <a href="/badge/free-model.svg">badge</a>
        </p>
        ${
          list.count > 0
            ? modelsTable(list.models, chosen?.id ?? null, query)
            : html`<p class="empty">No ranked model passes these filters.</p>`
        }
        ${usage(chosen, wanted, current.run, demo)} ${notes(list.notes)}`
    },
  }
}

/** The question to top-models: a form sends `needs` once a box, the interface takes one list. */
function questionOf(params: URLSearchParams): URLSearchParams {
  const asked = new URLSearchParams(
    [...params].filter(([name]) => name === 'minContext' || name === 'health'),
  )
  const needs = params.getAll('needs')
  if (needs.length > 0) asked.set('needs', needs.join(','))
  return asked
}

function standing(list: TopModels, now: Instant): Html {
  const { seed, stale, rankingConfidence, rankingConfidenceReason, updatedAt, rankingVersion } = list
  const warning = seed
    ? html`<p class="notice">
        Built-in seed: no stored recommendation can be read, and nothing was measured.
      </p>`
    : stale
      ? html`<p class="notice">Stale: this was evaluated ${ageOf(Date.parse(updatedAt), now)}.</p>`
      : NOTHING
  return html`${warning}
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
  return html`<form
    class="filters"
    action="/#models"
    method="get"
    data-room="models"
    aria-label="Filter models"
  >
    ${query.carry([...FILTERS, 'model'])}
    <fieldset>
      <legend>Must support</legend>
      ${NEED_NAMES.map(
        (need) =>
          html`<label
            ><input
              type="checkbox"
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
      <select name="minContext">
        <option value="">any length</option>
        ${contexts.map(
          (tokens) =>
            html`<option value="${tokens}" ${tokens === minContext ? html`selected` : NOTHING}>
              ${counted(tokens, 'tokens')}
            </option>`,
        )}
      </select></label
    >
    <label
      ><input type="checkbox" name="health" value="passed" ${passedOnly ? html`checked` : NOTHING} /> answered
      as asked</label
    >
    <button type="submit">Filter</button>
    <a
      href="${query.link({ needs: null, minContext: null, health: null, model: null }, 'models')}"
      data-room="models"
      >All models</a
    >
  </form>`
}

function usage(
  chosen: RankedModel | undefined,
  wanted: string | null,
  { baseUrl, createKeyUrl }: StoredRun,
  demo: boolean,
): Html {
  if (!chosen) {
    if (wanted === null) return NOTHING
    return html`<p class="notice">The model <code>${wanted}</code> is not in the list now.</p>`
  }
  return html`<h3>Ask <bdi>${chosen.name}</bdi></h3>
    ${
      demo
        ? html`<p>
            A scripted model, which answers on the machine of this server while the demo runs. Any text is a
            key:
            <code>export OPENROUTER_API_KEY=demo</code>
          </p>`
        : html`<p>
            With a key in <code>OPENROUTER_API_KEY</code>, which
            <a href="${createKeyUrl}" rel="noopener noreferrer">the routing service gives</a>:
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
