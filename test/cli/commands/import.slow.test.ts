import { appendFileSync, existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { lastCompleteDay } from '../../../src/domain/year/ledger.ts'
import { rawClient } from '../../adapters/sqlite/lock-holder.ts'
import { copyOfSample, SAMPLE_ARCHIVE } from '../../support/legacy-archive.ts'
import { storiesOf } from '../../support/signals.ts'
import { run, startDash, temporaryFolder } from '../../support/dash.ts'

/** Rows of the last completed UTC day, by the clock of the program. */
function rows(count: number, changes: Record<string, unknown> = {}): string {
  return storiesOf(lastCompleteDay(Date.now()), count, changes)
}

describe('import signals', () => {
  test('an import from standard input ends at the first signal, and leaves no copy of its input', async () => {
    const folder = temporaryFolder()
    const { child, end } = startDash(['import', 'signals', '-', '--data-dir', join(folder, 'data')], {
      env: { TMPDIR: folder },
    })
    child.stdin?.write(`${rows(1)}\n`)
    while (!readdirSync(folder).some((name) => name.startsWith('dash-input-')))
      await new Promise(setImmediate)
    expect(await end('SIGTERM')).toBe(143)
    expect(readdirSync(folder).filter((name) => name.startsWith('dash-input-'))).toEqual([])
  })

  test('an import ranks the live periods at its end; without a snapshot it ends with 1 and keeps its rows', async () => {
    const data = temporaryFolder()
    const args = ['import', 'signals', '-', '--json', '--data-dir', data]
    const { code, stdout } = await run(args, { stdin: rows(5) })
    const snapshotId: unknown = expect.stringMatching(/^feed-/)
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { snapshot: { outcome: 'taken', snapshotId } }])
    await rawClient(`file:${join(data, 'feed.db')}`).execute(
      'UPDATE snapshots SET generated_at = generated_at + 86400000',
    )
    const refused = await run(args, { stdin: rows(6) })
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining('error: no snapshot was stored: '),
    ])
    expect(JSON.parse(refused.stdout)).toMatchObject({ inserted: 1, snapshot: { outcome: 'refused' } })
  })

  test('an import that stores nothing takes no snapshot and creates no folder', async () => {
    const cwd = temporaryFolder()
    writeFileSync(join(cwd, 'bad.ndjson'), '{}\n')
    const { code, stdout } = await run(['import', 'signals', 'mistyped.ndjson', '--json'], { cwd })
    const errors = [{ file: 'mistyped.ndjson', line: null }]
    expect([code, JSON.parse(stdout)]).toMatchObject([1, { errors, snapshot: null }])
    for (const args of [
      ['signals', 'mistyped.ndjson', '--data-dir', join(cwd, 'named')],
      ['signals', join(cwd, 'bad.ndjson')],
      ['articles', 'mistyped.ndjson'],
      ['archive', 'mistyped'],
    ])
      expect((await run(['import', ...args], { cwd })).code).toBe(1)
    expect(readdirSync(cwd)).toEqual(['bad.ndjson'])
  })
})

describe('import articles', () => {
  const fields = { text: 'A text.', fetchedAt: '2026-03-01T12:00:00Z', provenance: 'test:file' }
  const text = (key: string, changes = {}): string => JSON.stringify({ key, ...fields, ...changes })

  const counts = { files: 1, replaced: 0, skipped: 0, errors: [], errorCount: 0 }

  test('an import reads gzip and standard input, prints one line, and changes nothing the second time', async () => {
    const folder = temporaryFolder()
    const file = join(folder, 'texts.ndjson.gz')
    writeFileSync(file, gzipSync(`${text('hn-1')}\n${text('hype-github-a/b')}\n`))
    const data = join(folder, 'data')
    expect(await run(['import', 'articles', file, '--data-dir', data])).toEqual({
      code: 0,
      stdout: '2 rows of 1 file: 2 inserted, 0 replaced, 0 unchanged, 0 skipped\n',
      stderr: '',
    })
    const again = await run(['import', 'articles', '-', '--data-dir', data, '--json'], {
      stdin: `${text('hn-1')}\n${text('hn-2', { text: '<b>x</b>' })}\n`,
    })
    expect([again.code, again.stderr]).toEqual([0, ''])
    expect(JSON.parse(again.stdout)).toEqual({ ...counts, rows: 2, inserted: 1, unchanged: 1 })
  })

  test('bad rows are reported by file and line; their file is left out, or its good rows are stored under skip', async () => {
    const folder = temporaryFolder()
    const file = join(folder, 'bad.ndjson')
    writeFileSync(file, `${text('hn-1')}\n${text('nobody-1')}\n${text('hn-2', { text: ' ' })}`)
    const args = ['import', 'articles', file, '--data-dir', join(folder, 'data')]
    const { code, stdout, stderr } = await run(args)
    const line = '3 rows of 1 file: 0 inserted, 0 replaced, 0 unchanged, 0 skipped\n'
    expect([code, stdout]).toEqual([1, line])
    expect(stderr).toContain(`${file}:2: key: must be a save key`)
    expect(stderr).toContain(`${file}:3: text: is empty`)
    expect(stderr).toContain('--on-error skip')
    const skipped = await run([...args, '--on-error', 'skip', '--json'])
    expect(skipped.code).toBe(0)
    expect(JSON.parse(skipped.stdout)).toMatchObject({ rows: 3, inserted: 1, skipped: 2, errorCount: 2 })
    // Skipped rows are notes.
    expect(skipped.stderr).toMatch(/^\S+:2: key: .*\n\S+:3: text: is empty.*\n$/)
    expect(await run([...args, '--on-error', 'skip', '--quiet'])).toEqual({ code: 0, stdout: '', stderr: '' })
  })
})

describe('import archive', () => {
  test('an archive is imported, and the second import changes nothing', async () => {
    const data = join(temporaryFolder(), 'new', 'data')
    const args = ['import', 'archive', SAMPLE_ARCHIVE, '--data-dir', data]
    expect(await run(args)).toEqual({ code: 0, stdout: '6 imported, 0 unchanged\n', stderr: '' })
    const again = await run([...args, '--json'])
    expect([again.code, again.stderr]).toEqual([0, ''])
    expect(JSON.parse(again.stdout)).toEqual({ imported: 0, unchanged: 6, refused: [], refusedCount: 0 })
    expect(await run([...args, '--quiet'])).toEqual({ code: 0, stdout: '', stderr: '' })
  })

  test('a refused import ends with 1 and every reason, and writes no ledger', async () => {
    const archive = copyOfSample()
    appendFileSync(join(archive, 'objects/v2-indented'), ' ')
    appendFileSync(join(archive, 'manifests.ndjson'), '{}\n')
    const data = temporaryFolder()
    const { code, stdout, stderr } = await run(['import', 'archive', archive, '--data-dir', data, '--json'])
    const size: unknown = expect.stringContaining('"objects/v2-indented": it has 464 bytes instead of 463')
    const refused = [
      { publicationId: 'top-year-v2-2024-01-04', line: 7, reason: size },
      { publicationId: null, line: 8, reason: expect.stringContaining('ledger: must be') as unknown },
    ]
    expect([code, JSON.parse(stdout)]).toEqual([1, { imported: 0, unchanged: 0, refused, refusedCount: 2 }])
    expect(stderr.trimEnd().split('\n')).toHaveLength(2)
    expect(existsSync(join(data, 'ledger.db'))).toBe(false)
    const nowhere = await run(['import', 'archive', join(archive, 'nowhere'), '--data-dir', data])
    expect([nowhere.code, nowhere.stdout]).toEqual([1, ''])
    expect(nowhere.stderr).toContain('manifests.ndjson: no such file')
  })
})
