import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { addDays, formatInstant } from '../../../../src/domain/time.ts'
import { staticObjectPath } from '../../../../src/domain/year/log/static-layout.ts'
import { openApp, openPage } from '../../../support/api-client.ts'
import { requestRoute } from '../../contract-client.ts'
import { publishSigned } from '../../../support/exports.ts'
import { signedLogIn } from '../../../support/signed-log.ts'
import {
  AS_OF,
  manifestsOf,
  publishDays,
  publishedWorkspace,
  sampleSignals,
} from '../../../support/workspace.ts'

const NEXT = addDays(AS_OF, 1)

test('the Proof section follows the log: none, signed, signed up to an earlier publication, and damaged', async () => {
  const workspace = await publishedWorkspace([AS_OF])
  const yearOf = async (index: number) => {
    const manifest = (await manifestsOf(workspace))[index]
    const at = formatInstant(manifest?.publishedAt ?? 0)
    const object = `/${staticObjectPath(manifest?.sha256 ?? '')}`
    return { ...(await openPage(workspace, `/?sort=year&at=${at}`)), at, object }
  }
  const unsigned = await yearOf(0)
  expect(unsigned.text).toContain('signs no checkpoints: the chain and a saved head are the proof.')
  expect(unsigned.page).not.toContain('download=')

  const log = signedLogIn(workspace.folder)
  await publishSigned({ ...workspace, log }, [NEXT])
  const { page, text, at, object } = await yearOf(1)
  for (const link of [object, `/tlog/year/proof?at=${at}`, '/tlog/year/policy'])
    expect(page).toMatch(new RegExp(`<a href="${link.replace('?', String.raw`\?`)}" +download="[^"]+"`))
  expect(page).toContain(`download="top-year-v3-${NEXT}.json.tlog-proof"`)
  const [origin = '', size, root = ''] = (
    await requestRoute(openApp(workspace), '/tlog/year/checkpoint')
  ).text.split('\n')
  expect(text).toContain(`Signed log ${origin}`)
  expect(text).toMatch(
    new RegExp(`Checkpoint ${size} entries, root +${root.replaceAll('+', String.raw`\+`)}`),
  )

  await workspace.feed.importSignals(sampleSignals(addDays(NEXT, 1)))
  await publishDays(workspace, [addDays(NEXT, 1)])
  const later = await yearOf(2)
  expect(later.text).toContain('No signed checkpoint contains this publication yet.')
  expect(later.page).not.toContain('download=')

  const note = join(workspace.objectsPath, 'tlog', 'year', '2')
  chmodSync(note, 0o600)
  writeFileSync(note, 'damaged')
  const damaged = await yearOf(1)
  expect([damaged.status, damaged.page.includes('download=')]).toEqual([200, false])
  expect(damaged.text).toContain('The signed log cannot be shown: year_log_archive_corrupt .')
})

test('the closed seal names its time alone, and its first line asks the reader to check', async () => {
  const workspace = await publishedWorkspace([AS_OF])
  const [manifest] = await manifestsOf(workspace)
  if (!manifest) throw new Error('nothing was published')
  const { sha256, publishedAt } = manifest
  const { page, text } = await openPage(workspace, '/?sort=year')
  const [before = '', opened = ''] = page.split('</summary>').filter((part) => /Sealed|Unchanged/.test(part))
  const minute = formatInstant(publishedAt).slice(11, 16)
  expect(before).toMatch(new RegExp(`Sealed<span class="roomy"> <time [^>]*>\\d+ \\w+ ${minute} UTC</time>`))
  expect(opened).toMatch(/^\s*<p>Unchanged since then: check it yourself<\/p>/)
  expect(text.split(sha256)).toHaveLength(2)
  expect(before).not.toContain(sha256.slice(0, 8))
  expect(text).not.toMatch(/✓|verified/i)
})
