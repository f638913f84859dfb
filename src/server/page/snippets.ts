import { copyable, shellText } from './copyable.ts'
import { html } from './html.ts'
import type { Html } from './html.ts'

const QUESTION = 'Say hello in one word.'

/** Ways to ask a model, each a text to copy. The key is taken from the environment, never written down. */
export function snippets(baseUrl: string, model: string): Html {
  const each: readonly (readonly [id: string, title: string, text: string])[] = [
    ['curl', 'curl', curl(baseUrl, model)],
    ['python', 'Python', python(baseUrl, model)],
    ['javascript', 'JavaScript', javascript(baseUrl, model)],
  ]
  return html`${each.map(([id, title, text]) =>
    copyable({ id: `snippet-${id}`, caption: title, what: `the line for ${title}`, text }),
  )}`
}

function curl(baseUrl: string, model: string): string {
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: QUESTION }] })
  const headers = `-H "Authorization: Bearer $OPENROUTER_API_KEY" -H 'Content-Type: application/json'`
  return `curl -s ${shellText(`${baseUrl}/chat/completions`)} ${headers} -d ${shellText(body)}`
}

/** With the packages of the interface's first maker, which most programs have. */
function python(baseUrl: string, model: string): string {
  const client = `OpenAI(base_url=${codeText(baseUrl)}, api_key=os.environ["OPENROUTER_API_KEY"])`
  const messages = `[{"role": "user", "content": ${codeText(QUESTION)}}]`
  const create = `chat.completions.create(model=${codeText(model)}, messages=${messages})`
  return `import os; from openai import OpenAI; print(${client}.${create}.choices[0].message.content)`
}

function javascript(baseUrl: string, model: string): string {
  const headers =
    '{ Authorization: `Bearer ${process.env.OPENROUTER_API_KEY}`, "Content-Type": "application/json" }'
  const body = `JSON.stringify({ model: ${codeText(model)}, messages: [{ role: "user", content: ${codeText(QUESTION)} }] })`
  const asked = `await fetch(${codeText(`${baseUrl}/chat/completions`)}, { method: "POST", headers: ${headers}, body: ${body} })`
  return `console.log((await (${asked}).json()).choices[0].message.content)`
}

/** A text as a literal of Python and JavaScript alike: ASCII alone, so that no editor shows it as another. */
function codeText(text: string): string {
  return JSON.stringify(text).replaceAll(
    /[\u007f-\uffff]/g,
    (unit) => String.raw`\u` + unit.charCodeAt(0).toString(16).padStart(4, '0'),
  )
}
