import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { fileObjects } from '../../../src/adapters/objects/objects.ts'
import type { Recommendation } from '../../../src/domain/models/schema.ts'
import { sealRun } from '../../../src/domain/models/stored-run.ts'
import { run, temporaryFolder } from '../../support/dash.ts'
import { sampleCandidates, sampleRun } from '../../domain/models/free-models.ts'
import { jsonSource, localSource } from '../../support/local-source.ts'

/** Creates a data folder whose store holds a run of that time. */
async function storedFolder(now = Date.now(), candidates = sampleCandidates(now)): Promise<string> {
  const folder = temporaryFolder()
  const root = join(folder, 'objects')
  mkdirSync(root)
  await fileObjects(root).recommendations.put('2026-08-22.v1', sealRun(sampleRun({ now, candidates })))
  return folder
}

const model = (args: readonly string[], options: Parameters<typeof run>[1] = {}) =>
  run(['model', ...args], options)

describe('dash model', () => {
  test('the output is a sentence, an ID, shell variables, or the whole recommendation', async () => {
    const data = await storedFolder()
    const print = (...args: string[]) => model(['--data-dir', data, ...args])
    const printed = (stdout: unknown): object => ({ code: 0, stdout, stderr: '' })
    const sentence =
      /^maker\/good:free \(Name of maker\/good:free\), score \d+, confidence (?:high|medium|low), updated /
    expect(await print()).toEqual(printed(expect.stringMatching(sentence)))
    expect(await print('--id')).toEqual(printed('maker/good:free\n'))
    expect(await print('--env')).toEqual(
      printed('export OPENAI_BASE_URL=https://openrouter.ai/api/v1\nexport OPENAI_MODEL=maker/good:free\n'),
    )
    expect(await print('--id', '--quiet')).toEqual(printed(''))
    const { code, stdout } = await print('--json')
    const fresh = { primary: { id: 'maker/good:free' }, seed: false, stale: false, ageHours: 0 }
    const recommendation = JSON.parse(stdout) as Recommendation
    expect([code, recommendation]).toMatchObject([0, fresh])
    expect(recommendation.alternatives).toHaveLength(3)
  })

  test('the best model that meets every need is printed, and the exit code is 1 if there is none', async () => {
    const data = await storedFolder(Date.now(), sampleCandidates(Date.now()).slice(1))
    const print = (...args: string[]) => model(['--data-dir', data, ...args])
    expect((await print('--id')).stdout).toBe('maker/talker:free\n')
    expect((await print('--id', '--needs', 'tools')).stdout).toBe('other/cached:free\n')
    const none = await print('--needs', 'tools,structured', '--json')
    expect([none.code, JSON.parse(none.stdout)]).toMatchObject([1, { exitCode: 1 }])
    expect(none.stderr).toBe(
      'error: the recommendation has no model that meets --needs tools,structured; drop a need, or use the router openrouter/free\n',
    )
  })

  test('the seed is printed with a note while nothing is stored, and no folder is created', async () => {
    const cwd = temporaryFolder()
    const { code, stdout, stderr } = await model(['--id'], { cwd })
    expect([code, readdirSync(cwd)]).toEqual([0, []])
    expect(stdout).toMatch(/^[\w-]+\/[\w.-]+:free\n$/)
    expect(stderr).toMatch(/built-in seed.*dash evaluate-models/)
    const whole = await model(['--json'], { cwd })
    expect(JSON.parse(whole.stdout)).toMatchObject({ seed: true, source: 'seed' })
  })

  test('a stale recommendation is noted on standard error', async () => {
    const data = await storedFolder(Date.now() - 40 * 3_600_000)
    const { code, stdout, stderr } = await model(['--data-dir', data, '--id'])
    expect([code, stdout]).toEqual([0, 'maker/good:free\n'])
    expect(stderr).toContain('stale')
  })

  test('a damaged store or a missing folder ends with 74', async () => {
    const data = await storedFolder()
    const path = join(data, 'objects/free-llm/current')
    writeFileSync(`${path}-new`, readFileSync(path, 'utf8').replace('maker/good', 'maker/best'))
    renameSync(`${path}-new`, path)
    const damaged = await model(['--data-dir', data, '--id'])
    expect([damaged.code, damaged.stdout]).toEqual([74, ''])
    expect(damaged.stderr).toContain('does not match its digest; create a new one with dash evaluate-models')
    expect((await model(['--data-dir', temporaryFolder(), '--id'])).code).toBe(74)
  })
})

describe('dash model --url', () => {
  test('a host without a shortlist ends with 69 and its address', async () => {
    const page = await localSource((_question, response) => response.end('<html>'))
    const missing = await localSource((_question, response) => response.writeHead(404).end())
    const other = await jsonSource({ models: [{ id: 'a/b; reboot' }] })
    for (const url of [page.url, missing.url, other.url]) {
      const { code, stdout, stderr } = await model(['--url', url, '--env'])
      expect([code, stdout, stderr.trim().split('\n').length]).toEqual([69, '', 1])
      expect(stderr).toContain(url)
    }
  })

  test('a reader of a host is not advised to evaluate models', async () => {
    const notes = ['is stale, last updated', 'has no stored recommendation: this is the built-in seed']
    for (const [index, seed] of [false, true].entries()) {
      const host = await jsonSource({ ...sampleRun(), count: 4, stale: true, seed })
      const { code, stderr } = await model(['--url', host.url])
      expect([code, stderr]).toEqual([0, expect.stringContaining(notes[index] ?? '')])
      expect(stderr).not.toContain('evaluate-models')
    }
  })

  test('a host whose shortlist is empty ends with 1 and its router', async () => {
    const empty = await jsonSource({ ...sampleRun(), count: 0, models: [], baseUrl: 'https://x.test' })
    expect(await model(['--url', empty.url])).toMatchObject({
      code: 1,
      stderr: 'error: the recommendation has no model; use the router openrouter/free\n',
    })
  })

  test('text of a host is quoted for the shell that evaluates it', async () => {
    const stored = sampleRun()
    const odd = await jsonSource({ ...stored, count: 4, baseUrl: "https://x.test/$(touch owned)'&y" })
    const { stdout } = await model(['--url', odd.url, '--env'])
    expect(stdout).toBe(
      `export OPENAI_BASE_URL='https://x.test/$(touch owned)'\\''&y'\nexport OPENAI_MODEL=maker/good:free\n`,
    )
  })
})
