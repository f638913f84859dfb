import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { fileObjects } from '../../../src/adapters/objects/open.ts'
import type { Recommendation } from '../../../src/domain/models/schema.ts'
import { sealRun } from '../../../src/domain/models/stored-run.ts'
import { dash, serve, temporaryFolder } from '../../support/dash.ts'
import { sampleCandidates, sampleRun } from '../../support/free-models.ts'
import { jsonSource, localSource, unreachableUrl } from '../../support/local-source.ts'

/** A data folder whose store holds a run made at that time. */
async function storedFolder(now = Date.now(), candidates = sampleCandidates(now)): Promise<string> {
  const folder = temporaryFolder()
  const root = join(folder, 'objects')
  mkdirSync(root)
  await fileObjects(root).recommendations.put('2026-08-22.v1', sealRun(sampleRun({ now, candidates })))
  return folder
}

const model = (args: readonly string[], options: Parameters<typeof dash>[1] = {}) =>
  dash(['model', ...args], options)

describe('dash model', () => {
  test('prints the model for a person, its id, the variables of a shell, or the whole recommendation', async () => {
    const data = await storedFolder()
    const run = (...args: string[]) => model(['--data-dir', data, ...args])
    const person = await run()
    expect(person).toMatchObject({ code: 0, stderr: '' })
    expect(person.stdout).toMatch(
      /^maker\/good:free \(Name of maker\/good:free\), score \d+, confidence (?:high|medium|low), updated /,
    )
    expect(await run('--id')).toEqual({ code: 0, stdout: 'maker/good:free\n', stderr: '' })
    expect(await run('--env')).toEqual({
      code: 0,
      stdout: 'export OPENAI_BASE_URL=https://openrouter.ai/api/v1\nexport OPENAI_MODEL=maker/good:free\n',
      stderr: '',
    })
    const { code, stdout } = await run('--json')
    const recommendation = JSON.parse(stdout) as Recommendation
    expect([code, recommendation.primary.id, recommendation.alternatives.length]).toEqual([
      0,
      'maker/good:free',
      3,
    ])
    expect(recommendation).toMatchObject({ seed: false, stale: false, ageHours: 0 })
    expect(await run('--id', '--quiet')).toEqual({ code: 0, stdout: '', stderr: '' })
  })

  test('prints the best model that meets every need, and ends with 1 when there is none', async () => {
    const data = await storedFolder(Date.now(), sampleCandidates(Date.now()).slice(1))
    const run = (...args: string[]) => model(['--data-dir', data, ...args])
    expect((await run('--id')).stdout).toBe('maker/talker:free\n')
    expect((await run('--id', '--needs', 'tools')).stdout).toBe('other/cached:free\n')
    const none = await run('--needs', 'tools,structured', '--json')
    expect([none.code, none.stderr.trim().split('\n').length]).toEqual([1, 1])
    expect(none.stderr).toContain('--needs tools,structured')
    expect(none.stderr).toContain('openrouter/free')
    expect(JSON.parse(none.stdout)).toMatchObject({ exitCode: 1 })
  })

  test('prints the seed while nothing is stored, says so, and creates no folder', async () => {
    const cwd = temporaryFolder()
    const { code, stdout, stderr } = await model(['--id'], { cwd })
    expect([code, existsSync(join(cwd, 'dash-data'))]).toEqual([0, false])
    expect(stdout).toMatch(/^[\w-]+\/[\w.-]+:free\n$/)
    expect(stderr).toContain('built-in seed')
    expect(stderr).toContain('dash evaluate-models')
    expect(JSON.parse((await model(['--json'], { cwd })).stdout)).toMatchObject({
      seed: true,
      source: 'seed',
    })
  })

  test('says on standard error that a recommendation is stale', async () => {
    const data = await storedFolder(Date.now() - 40 * 3_600_000)
    const { code, stdout, stderr } = await model(['--data-dir', data, '--id'])
    expect([code, stdout]).toEqual([0, 'maker/good:free\n'])
    expect(stderr).toContain('stale')
  })

  test('ends with 74 when what is stored is damaged, and with 64 when the folder of its flag is not there', async () => {
    const data = await storedFolder()
    const path = join(data, 'objects/free-llm/current')
    const text = readFileSync(path, 'utf8').replace('maker/good', 'maker/best')
    writeFileSync(`${path}-new`, text)
    renameSync(`${path}-new`, path)
    const damaged = await model(['--data-dir', data, '--id'])
    expect([damaged.code, damaged.stdout]).toEqual([74, ''])
    expect(damaged.stderr).toContain('does not match its digest; dash evaluate-models makes a new one')
    const missing = await model(['--data-dir', join(data, 'unmounted')])
    expect([missing.code, missing.stdout]).toEqual([64, ''])
    const bare = temporaryFolder()
    expect((await model(['--data-dir', bare, '--id'])).code).toBe(74)
  })
})

describe('dash model --url', () => {
  test('asks a running server, as its endpoint answers', async () => {
    const data = await storedFolder()
    const { url } = await serve(['--data-dir', data])
    expect(await model(['--url', `${url}/`, '--id', '--needs', 'structured'])).toEqual({
      code: 0,
      stdout: 'maker/good:free\n',
      stderr: '',
    })
    const served: unknown = await (await fetch(`${url}/api/free-llm/recommendation`)).json()
    expect(JSON.parse((await model(['--url', url, '--json'])).stdout)).toEqual(served)
  })

  test('says when the server has only the seed', async () => {
    const { url } = await serve([], { cwd: temporaryFolder() })
    const { code, stderr } = await model(['--url', url, '--id'])
    expect([code, stderr]).toEqual([0, expect.stringContaining('built-in seed')])
  })

  test('ends with 69 and the address when there is no such answer', async () => {
    const page = await localSource((_question, response) => response.end('<html>'))
    const missing = await localSource((_question, response) => response.writeHead(404).end())
    const broken = await localSource((_question, response) => response.writeHead(503).end())
    const other = await jsonSource({ models: [{ id: 'a/b; reboot' }] })
    for (const url of [await unreachableUrl(), page.url, missing.url, broken.url, other.url]) {
      const { code, stdout, stderr } = await model(['--url', url, '--env'])
      expect([code, stdout, stderr.trim().split('\n').length]).toEqual([69, '', 1])
      expect(stderr).toContain(url)
    }
  })

  test('quotes what a host says for the shell that evaluates it', async () => {
    const run = sampleRun()
    const odd = await jsonSource({ ...run, count: 4, baseUrl: "https://x.test/$(touch owned)'&y" })
    const { stdout } = await model(['--url', odd.url, '--env'])
    expect(stdout).toBe(
      `export OPENAI_BASE_URL='https://x.test/$(touch owned)'\\''&y'\nexport OPENAI_MODEL=maker/good:free\n`,
    )
  })
})
