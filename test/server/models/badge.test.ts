import { describe, expect, test } from 'vitest'
import { badgeSvg } from '../../../src/server/models/routes.ts'
import type { StoredRun } from '../../../src/domain/models/schema.ts'
import { seedRun } from '../../../src/domain/models/seed.ts'
import { openApp } from '../../support/api-client.ts'
import { openWorkspace } from '../../support/workspace.ts'

const run = seedRun()
const UPDATED = Date.parse(run.updatedAt)

function withPrimary(id: string): StoredRun {
  const [first, ...others] = run.models
  return { ...run, models: first ? [{ ...first, id }, ...others] : [] }
}

const served = (id: string) => ({ run: withPrimary(id), seed: false, storeAnswers: true })

describe('the badge', () => {
  test('is served as a picture that may be kept, with a tag, and says that it is the seed', async () => {
    const app = openApp(await openWorkspace())
    const address = 'http://dash.test/badge/free-model.svg'
    const response = await app.request(address)
    const picture = await response.text()
    expect(response.headers.get('content-type')).toBe('image/svg+xml; charset=utf-8')
    expect(response.headers.get('cache-control')).toBe('public, max-age=300, stale-while-revalidate=3600')
    expect(response.headers.get('content-security-policy')).toBe("default-src 'none'")
    expect(picture).toContain(`${run.models[0]?.id} (seed)</title>`)
    const etag = response.headers.get('etag') ?? ''
    expect((await app.request(address, { headers: { 'if-none-match': etag } })).status).toBe(304)
    expect((await app.request(address, { method: 'POST' })).status).toBe(405)
  })

  test('says when the recommendation is stale, and when it is a demo', () => {
    expect(badgeSvg(served('a/b:free'), false, UPDATED + 3_600_000)).toContain('free model: a/b:free</title>')
    const stale = badgeSvg(served('a/b:free'), true, UPDATED + 37 * 3_600_000)
    expect(stale).toContain('DEMO: free model: a/b:free (stale)</title>')
  })

  test('escapes and cuts what a catalogue wrote', () => {
    const hostile = badgeSvg(served(`"/><script>alert(1)</script>\u0000\ud800&`), false, UPDATED)
    expect(hostile).toContain('&quot;/&gt;&lt;script&gt;alert(1)&lt;/script&gt;')
    expect(hostile).not.toContain('<script')
    expect(hostile.isWellFormed()).toBe(true)
    expect(badgeSvg(served('😀'.repeat(500)), false, UPDATED)).toContain(`${'😀'.repeat(59)}…</text>`)
  })
})
