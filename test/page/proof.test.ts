import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Download } from 'playwright-core'
import { expect, test } from 'vitest'
import { formatInstant } from '../../src/domain/time.ts'
import { listenLocally, openApp } from '../support/api-client.ts'
import { run, temporaryFolder } from '../support/dash.ts'
import { signedLogIn } from '../support/signed-log.ts'
import { AS_OF, openWorkspace, publishDays, sampleSignals } from '../support/workspace.ts'
import { flawsOf, picture, SCREENS, visit, WIDE } from './browser.ts'

/** The page of a publication at a server with a signed log, and the name of its file. */
async function serveLog(): Promise<{ own: string; fileName: string }> {
  const workspace = await openWorkspace()
  await workspace.feed.importSignals(sampleSignals())
  await publishDays({ ...workspace, log: signedLogIn(workspace.folder) }, [AS_OF])
  const { url } = await listenLocally(openApp(workspace))
  const manifest = (await workspace.year.read()).proved.timeline.at(-1)?.manifest
  const at = formatInstant(manifest?.publishedAt ?? 0)
  return { own: `${url}/?sort=year&at=${at}`, fileName: `${manifest?.publicationId}.json` }
}

test('the open Proof section is accessible, fits and has no error on every screen', async () => {
  const { own } = await serveLog()
  for (const { name, viewport, colorScheme } of SCREENS) {
    const visited = await visit(own, { viewport, colorScheme })
    await visited.page.locator('#proof > summary').focus()
    await visited.page.keyboard.press('Enter')
    await visited.page.locator('.proof-files').waitFor()
    await picture(visited.page, `proof-${name}`)
    expect([name, await flawsOf(visited)]).toEqual([name, []])
  }
})

test('the downloaded files verify offline, also without scripts', async () => {
  const { own, fileName } = await serveLog()
  const { page } = await visit(own, { viewport: WIDE, javaScriptEnabled: false })
  await page.locator('#proof > summary').click()
  const cwd = temporaryFolder()
  const save = async (name: string): Promise<string> => {
    const started: Promise<Download> = page.waitForEvent('download')
    await page.locator('#proof').getByRole('link', { name, exact: true }).click()
    const download = await started
    await download.saveAs(join(cwd, download.suggestedFilename()))
    return download.suggestedFilename()
  }
  const names = [await save('Publication'), await save('Proof file'), await save('Policy')]
  expect(names).toEqual([fileName, `${fileName}.tlog-proof`, 'policy.txt'])
  const verify = () => run(['verify', fileName, `${fileName}.tlog-proof`, '--policy', 'policy.txt'], { cwd })
  expect(await verify()).toMatchObject({ code: 0 })
  writeFileSync(join(cwd, fileName), '{}')
  expect(await verify()).toMatchObject({ code: 65 })
})
