import type { RankedModel, StoredRun } from '../../../domain/models/schema.ts'
import { NEED_NAMES, NEEDS } from '../../../domain/models/shortlist.ts'
import { NOTHING, copyable, formatCount, formatCounted, html, shellText } from '../html.ts'
import type { Html } from '../html.ts'
import { NEED_TITLES } from './models-filter.ts'

/** How to call a model, open if the address names it, and all facts about it. */
export function usageSection(
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
    ['Last test', checkedAt ?? 'none'],
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
