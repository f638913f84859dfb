import { setTimeout } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openExtractor } from '../../../src/adapters/articles/extractor.ts'
import type { Extractor } from '../../../src/adapters/articles/extractor.ts'
import type { ExtractRequest, Extracted } from '../../../src/adapters/articles/extract.ts'
import { pageHtml } from '../../support/pages.ts'
import { builtModule } from '../../support/compiled-sources.ts'

const NEVER = new AbortController().signal

function open(extractMs?: number): Extractor {
  const script = new URL(builtModule('adapters/articles/extract-worker.js'))
  const extractor = openExtractor({ script, ...(extractMs === undefined ? {} : { extractMs }) })
  onTestFinished(() => extractor.close())
  return extractor
}

const page = (html: string | Buffer, contentType = 'text/html'): ExtractRequest => ({
  as: 'page',
  bytes: Buffer.from(html),
  contentType,
  token: 'dash',
})

/** Pages that cost the parser or readability far more than they weigh. */
const HOSTILE: Record<string, string> = {
  'nested elements': `<html><body>${'<div>'.repeat(400_000)}`,
  'nested formatting': `<html><body>${'<b><i><a><p>'.repeat(150_000)}`,
  'nested tables': `<html><body>${'<table><tr><td>'.repeat(130_000)}`,
  'line breaks': `<html><body><div>${'a<br><br>'.repeat(200_000)}</div>`,
  'empty paragraphs': `<html><body>${'<p>'.repeat(600_000)}`,
}

describe('taking out the text of a hostile page', () => {
  test.each(Object.entries(HOSTILE))(
    'a hostile page is ended, delays no other page, and the next page gets its text: %s',
    async (_what, html) => {
      const extractor = open(3_000)
      await expect(extractor.extract(page(html), NEVER)).rejects.toMatchObject({
        name: 'PageProblem',
        why: null,
        message: expect.stringMatching(/timed out after 3000 ms|memory limit|call stack/) as string,
      })
      expect(await extractor.extract(page(pageHtml('The next page')), NEVER)).toMatchObject({ kind: 'text' })
    },
  )

  test('a hostile page is not waited for after the run has ended', async () => {
    const extractor = open(60_000)
    const controller = new AbortController()
    const reason = new Error('the run was ended')
    const extracting = extractor.extract(page(HOSTILE['nested elements'] ?? ''), controller.signal)
    setImmediate(() => controller.abort(reason))
    await expect(extracting).rejects.toBe(reason)
  })
})

/** A thread that counts its pages, and fails on a message of the channel. */
const FAILS_WHEN_TOLD = `
  import { parentPort } from 'node:worker_threads'
  let pages = 0
  parentPort.on('message', () => parentPort.postMessage({ kind: 'text', text: String(++pages) }))
  new BroadcastChannel('fail').onmessage = () => { throw new Error('failed between two pages') }
  parentPort.postMessage('ready')
`

test('a thread that fails between two pages harms no page, and is replaced for the next one', async () => {
  const script = new URL(`data:text/javascript,${encodeURIComponent(FAILS_WHEN_TOLD)}`)
  const extractor = openExtractor({ script, extractMs: 3_000 })
  const channel = new BroadcastChannel('fail')
  onTestFinished(async () => {
    channel.close()
    await extractor.close()
  })
  const first = await extractor.extract(page(''), NEVER)
  channel.postMessage('now')
  await setTimeout(300)
  const next = (): Promise<Extracted | string> =>
    extractor.extract(page(''), NEVER).catch((error: Error) => error.message)
  const failed = 'the text could not be extracted: failed between two pages'
  let outcome = await next()
  // A thread that fails later extracts more pages, or fails with the next one.
  while (outcome === failed || (typeof outcome === 'object' && !isDeepStrictEqual(outcome, first)))
    outcome = await next()
  expect(outcome).toEqual(first)
})

test('pages are extracted one at a time, each with its own response', async () => {
  const extractor = open()
  const words = ['One', 'Two', 'Three']
  const extracted = await Promise.all(words.map((word) => extractor.extract(page(pageHtml(word)), NEVER)))
  expect(
    extracted.map((each: Extracted) => each.kind === 'text' && /Heading\s+(\w+)/.exec(each.text)?.[1]),
  ).toEqual(words)
})
