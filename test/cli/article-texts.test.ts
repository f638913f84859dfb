import { expect, onTestFinished, test } from 'vitest'
import { Container } from '../../src/cli/container.ts'
import { readConfig } from '../../src/cli/settings/read-config.ts'
import type { ArticleReading } from '../../src/domain/feed/article.ts'
import { site } from '../adapters/articles/pages.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const TEXT = 'A plain text of some length. '.repeat(20)

async function read(env: Record<string, string>, url: string): Promise<ArticleReading> {
  const config = readConfig({}, env, temporaryFolder())
  const container = new Container({ config, version: '0.0.0' })
  onTestFinished(() => container.close())
  const texts = await container.articleTexts()
  return texts.read({ source: 'hn', sourceId: '1', url }, new AbortController().signal)
}

test('links are followed to private addresses only if the configuration names them', async () => {
  const { url } = await site((_question, response) => {
    response.writeHead(200, { 'content-type': 'text/plain' }).end(TEXT)
  })
  const elsewhere = { DASH_ARTICLE_ALLOW_PRIVATE: '10.0.0.0/8,fd00::/8' }
  expect(await read(elsewhere, url)).toMatchObject({ kind: 'skipped', why: 'private' })
  const allowed = { DASH_ARTICLE_ALLOW_PRIVATE: '10.0.0.0/8, 127.0.0.1' }
  expect(await read(allowed, url)).toMatchObject({ kind: 'text', text: TEXT.trim() })
})

test('points and number of texts come from the environment or are defaults', () => {
  const articles = (env: Record<string, string>) => readConfig({}, env, '/').articles
  expect(articles({})).toEqual({
    minPoints: { hn: 100, lobsters: 20, lesswrong: 30 },
    perRun: 200,
    allowed: [],
  })
  const env = { DASH_ARTICLE_MIN_POINTS: ' hn = 5 ,hype:github=0', DASH_ARTICLE_MAX_PER_RUN: '0' }
  expect(articles(env)).toMatchObject({ minPoints: { hn: 5, 'hype:github': 0 }, perRun: 0 })
  for (const bad of ['hn', 'hn=', 'hn=-1', 'hn=1,', 'digg=1', 'hn=1,hn=2', 'hn=1.5'])
    expect(() => articles({ DASH_ARTICLE_MIN_POINTS: bad }), bad).toThrow('DASH_ARTICLE_MIN_POINTS')
  for (const bad of ['localhost', '10.0.0.0/33', '10.0.0.1/8', '10.0.0.0/8,', '*'])
    expect(() => articles({ DASH_ARTICLE_ALLOW_PRIVATE: bad }), bad).toThrow('DASH_ARTICLE_ALLOW_PRIVATE')
})
