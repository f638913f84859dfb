import { describe, expect, test } from 'vitest'
import { dash, run, serve, temporaryFolder } from '../../support/dash.ts'

const row = (sourceId: string, title: string, day = '2026-03-01'): string =>
  JSON.stringify({
    source: 'hn',
    sourceId,
    day,
    title,
    url: null,
    points: 1,
    comments: 0,
    publishedAt: `${day}T00:00:00Z`,
  })

async function filled(): Promise<string> {
  const folder = temporaryFolder()
  const stdin = `${row('1', 'Rust')}\n${row('2', 'Go')}\n`
  const { code, stdout } = await run(['import', 'signals', '-', '--data-dir', folder, '--json'], { stdin })
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({ inserted: 2 })
  return folder
}

describe('dash search and dash reindex', () => {
  test('an item is printed on one line without control characters, whatever its id and title contain', async () => {
    const folder = temporaryFolder()
    const stdin = row('1\n2026-03-01  hn-9', 'Rust\n\u009b2J\u202eforged')
    await run(['import', 'signals', '-', '--data-dir', folder], { stdin })
    expect(await dash(['search', 'rust', '--data-dir', folder])).toEqual({
      code: 0,
      stdout: '2026-03-01  hn-1\\n2026-03-01  hn-9  1  Rust\\n\\u009b2J\\u202eforged\n',
      stderr: '',
    })
    const json = await dash(['search', 'rust', '--json', '--data-dir', folder])
    expect(json.stdout.trimEnd()).not.toMatch(/[\p{Cc}\p{Cf}]/u)
    const items = [{ title: 'Rust\n\u009b2J\u202eforged' }]
    expect(JSON.parse(json.stdout)).toMatchObject({ items, cursor: null, total: 1 })
    const minimum = async (...args: string[]) => dash(['search', 'rust', ...args, '--data-dir', folder])
    expect((await minimum('--min-points', '1', '--min-comments', '0')).stdout).toMatch(/^2026-03-01 {2}hn-1/)
    expect((await minimum('--min-points', '2')).stdout).toBe('nothing found\n')
    expect((await minimum('--min-comments', '1')).stdout).toBe('nothing found\n')
    await run(['import', 'signals', '-', '--data-dir', folder], {
      stdin: row('2', 'Rust', '2026-02-28'),
    })
    expect((await minimum()).stdout).toMatch(/^2026-02-28 {2}hn-2/)
    expect((await minimum('--sort', 'newest')).stdout).toMatch(/^2026-03-01 {2}hn-1/)
  })

  test('reindex rebuilds the index, and reports it in one line or one document', async () => {
    const folder = await filled()
    const line = await run(['reindex', '--data-dir', folder])
    expect(line).toMatchObject({ code: 0, stderr: '' })
    expect(line.stdout).toMatch(/^2 items indexed in \d+\.\d s\n$/)
    const json = await run(['reindex', '--json', '--data-dir', folder])
    expect(JSON.parse(json.stdout)).toEqual({ job: 'reindex', indexed: 2, durationMs: expect.any(Number) })
    expect((await dash(['search', 'go', '--data-dir', folder])).stdout).toContain('hn-2')
  })

  test('a server searches in its search process, finds new imports, and ends at once', async () => {
    const folder = await filled()
    const { url, end } = await serve(['--data-dir', folder])
    const titles = async (query: string): Promise<string[]> => {
      const response = await fetch(`${url}/api/search?q=${query}`)
      expect(response.status).toBe(200)
      return ((await response.json()) as { items: { title: string }[] }).items.map(({ title }) => title)
    }
    expect(await titles('go')).toEqual(['Go'])
    await run(['import', 'signals', '-', '--data-dir', folder], { stdin: `${row('3', 'Zig')}\n` })
    expect(await titles('zig')).toEqual(['Zig'])
    expect(await end('SIGTERM')).toBe(0)
  })
})
