import { expect, test } from 'vitest'
import { nameOfSource, unitOf } from '../../../src/domain/feed/subscription.ts'

test.each([
  ['hn', 'Hacker News', 'points'],
  ['lobsters', 'Lobsters', 'points'],
  ['lesswrong', 'LessWrong', 'karma'],
  ['hype:github', 'GitHub', 'stars'],
  ['hype:huggingface', 'Hugging Face', 'likes'],
  ['hype:replicate', 'Replicate', 'runs'],
  ['hype:reddit', 'Reddit', 'upvotes'],
  ['midjourney', 'Midjourney', 'points'],
  ['hype:other', 'hype:other', 'points'],
])('%s is called %s and counts %s', (source, name, unit) => {
  expect([nameOfSource(source), unitOf(source)]).toEqual([name, unit])
})
