import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { beforeEach, describe, expect, test } from 'vitest'
import { snippets } from '../../../../src/server/page/models/models-page.ts'
import { localSource } from '../../../support/local-source.ts'

const run = promisify(execFile)

interface Asked {
  path: string | undefined
  key: string | undefined
  body: { model: string; messages: { role: string; content: string }[] }
}

let asked: Asked[]
let baseUrl: string

beforeEach(async () => {
  asked = []
  const { url } = await localSource(({ target: path, headers: { authorization: key }, body }, response) => {
    asked.push({ path, key, body: JSON.parse(body) as Asked['body'] })
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ choices: [{ message: { content: 'Hello' } }] }))
  })
  baseUrl = `${url}/api/v1`
})

/** A line as a visitor would copy it. */
function line(id: string, model: string): string {
  const shown = new RegExp(`id="snippet-${id}">([^<]*)<`).exec(snippets(baseUrl, model).html)?.[1] ?? ''
  return shown
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
}

const env = { PATH: process.env['PATH'] ?? '', OPENROUTER_API_KEY: 'the key' }

/** Ids that a catalogue could contain, with special characters of shells and programs. */
const MODELS = ['vendor/model:free', `a'b"c$(id)\`id\`\\ü\u2028&<d>/e:free`]

describe.each(MODELS)('for the model %j', (model) => {
  test.each([
    ['curl', (text: string) => run('sh', ['-c', text], { env })],
    ['javascript', (text: string) => run(process.execPath, ['--input-type=module', '-e', text], { env })],
  ])('the snippet for %s calls the model with the key of the environment', async (id, execute) => {
    const { stdout } = await execute(line(id, model))
    expect(stdout).toContain('Hello')
    expect(asked).toEqual([
      {
        path: '/api/v1/chat/completions',
        key: 'Bearer the key',
        body: { model, messages: [{ role: 'user', content: 'Say hello in one word.' }] },
      },
    ])
  })

  test('the snippet for Python holds the model as one literal', () => {
    const literal = /model=("(?:[^"\\]|\\.)*"), messages/.exec(line('python', model))?.[1] ?? ''
    expect(literal).toMatch(/^[\x20-\x7e]+$/)
    expect(JSON.parse(literal)).toBe(model)
  })
})
