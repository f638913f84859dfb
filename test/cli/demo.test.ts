import { readFileSync, readdirSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { storedRunSchema } from '../../src/domain/models/schema.ts'
import { proveRun, sealRun } from '../../src/domain/models/stored-run.ts'

const SAMPLE = new URL('../../assets/demo/', import.meta.url)

test('every signal of the bundled sample vouches for its title, so that the demo requests none', () => {
  const files = readdirSync(SAMPLE).filter((name) => /^(?!articles).*\.ndjson\.gz$/.test(name))
  expect(files).toHaveLength(5)
  for (const file of files) {
    const lines = gunzipSync(readFileSync(new URL(file, SAMPLE)))
      .toString()
      .trimEnd()
      .split('\n')
    const rows = lines.map((line) => JSON.parse(line) as { source: string; titleProvenance?: string })
    expect(rows.filter(({ source, titleProvenance }) => !titleProvenance?.startsWith(`${source}:`))).toEqual(
      [],
    )
  }
})

test('the bundled recommendation is a sound run of made-up models at the end of the sample', () => {
  const text = readFileSync(new URL('recommendation.json', SAMPLE), 'utf8')
  const run = storedRunSchema.parse(JSON.parse(text))
  expect(proveRun(sealRun(run))).toEqual(run)
  expect(run.models.map(({ healthStatus }) => healthStatus)).toEqual([
    'passed',
    'passed',
    'imperfect',
    'imperfect',
  ])
  expect(new Set(text.match(/\d{4}-\d\d-\d\d(T[\d:.]+Z)?/g))).toEqual(
    new Set(['2021-11-08', '2021-11-08T00:00:00.000Z']),
  )
})
