import { expect, test } from 'vitest'
import { exposition } from '../../../src/server/metrics/catalogue.ts'

test('an exposition has exactly the samples, each with its help and type', async () => {
  const text = await exposition([
    ['dash_gaps', 0.25],
    ['dash_store_up', 1, { store: 'ledger' }],
    ['dash_store_up', 0, { store: 'feed' }],
  ])
  expect(text.split('\n').filter((line) => line !== '')).toEqual([
    '# HELP dash_gaps Days that are permanent gaps.',
    '# TYPE dash_gaps gauge',
    'dash_gaps 0.25',
    '# HELP dash_store_up 1 if a store is ready.',
    '# TYPE dash_store_up gauge',
    'dash_store_up{store="ledger"} 1',
    'dash_store_up{store="feed"} 0',
  ])
  expect(await exposition([])).toBe('')
})
