import type { RankedModel } from '../../domain/models/schema.ts'
import { counted, formatCount } from './counts.ts'
import { html, NOTHING } from './html.ts'
import type { Html } from './html.ts'
import type { PageQuery } from './page-query.ts'

/** The roles are those that the elements lose where the style makes cards of the rows on a narrow screen. */
export function modelsTable(models: readonly RankedModel[], chosen: string | null, query: PageQuery): Html {
  return html`<table class="models" role="table">
    <caption class="unseen">
      Free models, best first: what was measured, and what the catalogue claims
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
  const moved =
    previousRank === null || previousRank === rank ? NOTHING : html` <small>was ${previousRank}</small>`
  return html`<tr role="row" ${isChosen ? html`class="chosen"` : NOTHING}>
    <td role="cell" class="rank">${rank}${moved}</td>
    <th scope="row" role="rowheader">
      <a
        href="${query.link({ model: id }, 'models')}"
        data-room="models"
        ${isChosen ? html`aria-current="true"` : NOTHING}
        ><bdi>${name}</bdi></a
      >
      <code>${id}</code>
      <small><bdi>${reason}</bdi></small>
    </th>
    <td role="cell" data-title="Measured">${measured(model)}</td>
    <td role="cell" data-title="Claimed">${claimed(model)}</td>
    <td role="cell" data-title="Score" class="score">${score(model)}</td>
  </tr>`
}

const HEALTH: Readonly<Record<string, string>> = {
  passed: 'answered as asked',
  imperfect: 'answered in another form',
  not_probed: 'not asked',
  timeout: 'did not answer in time',
  failed: 'failed',
}

function measured({ healthStatus, latencyMs, toolUse, supportsTools, evalSummary }: RankedModel): Html {
  const { status, passed, total, cacheAgeDays } = evalSummary
  const age = cacheAgeDays === undefined ? '' : `, ${counted(cacheAgeDays, 'days')} old`
  const lite = status === 'not_evaluated' ? 'no lite evaluation' : `lite evaluation ${passed}/${total}${age}`
  return html`<ul class="marks">
    <li>
      ${HEALTH[healthStatus] ?? html`<code>${healthStatus}</code>`}${
        latencyMs === null ? NOTHING : html` in ${formatCount(latencyMs)} ms`
      }
    </li>
    <li>${tools(toolUse, supportsTools)}</li>
    <li>${lite}</li>
  </ul>`
}

function tools(toolUse: RankedModel['toolUse'], claims: boolean): Html {
  if (toolUse === 'proven') return html`<span class="good">✓ used a tool</span>`
  if (toolUse === 'unknown') return html`tool use not measured`
  const text = claims ? '✕ claims tools, used none' : 'used no tool'
  return html`<span class="${claims ? 'bad' : ''}">${text}</span>`
}

/** What the catalogue says of a model, under the names of the filters. */
const CLAIMS = {
  supportsTools: 'tools',
  supportsToolChoice: 'tool choice',
  supportsStructuredOutputs: 'structured outputs',
  supportsResponseFormat: 'response format',
  supportsReasoning: 'reasoning',
  supportsSeed: 'seed',
  supportsStop: 'stop',
} as const satisfies Partial<Record<keyof RankedModel, string>>

function claimed(model: RankedModel): Html {
  const { contextLength, maxCompletionTokens } = model
  const claims = Object.entries(CLAIMS).flatMap(([field, text]) =>
    model[field as keyof typeof CLAIMS] ? [text] : [],
  )
  const output = maxCompletionTokens === null ? NOTHING : html`, ${formatCount(maxCompletionTokens)} out`
  return html`${formatCount(contextLength)} tokens${output}
    <small>${claims.length > 0 ? claims.join(', ') : 'no capability'}</small>`
}

function score(model: RankedModel): Html {
  const { metadataScore, healthScore, latencyScore, liteEvalScore, instabilityPenalty } = model
  return html`<strong>${formatCount(model.score)}</strong>
    <small
      >metadata ${metadataScore}, health ${healthScore}, latency ${latencyScore}, lite
      ${liteEvalScore}${instabilityPenalty > 0 ? html`, instability −${instabilityPenalty}` : NOTHING}</small
    >`
}
