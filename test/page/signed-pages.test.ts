import { expect, test } from 'vitest'
import { addDays, formatInstant } from '../../src/domain/time.ts'
import { exportedPages } from '../../src/server/page/year/exported-pages.ts'
import { listenLocally, openApp } from '../support/api-client.ts'
import { exportFolder, exportTo, signedWorkspace } from '../support/exports.ts'
import { serveFiles } from '../support/static-host.ts'
import { filesOfFolder } from '../support/temporary-folder.ts'
import { AS_OF, manifestsOf } from '../support/workspace.ts'
import { flawsOf, picture, SCREENS, visit } from './browser.ts'

test('exported pages are accessible, fit and have no error on every screen, with the first story within 200 pixels', async () => {
  const workspace = await signedWorkspace([AS_OF, addDays(AS_OF, 1)])
  const { path: folder, tree } = exportFolder(workspace)
  await exportTo(workspace, tree, { pagesOf: exportedPages })
  const exported = Object.entries(filesOfFolder(folder))
  const files = exported.map(([name, base64]) => [name, Buffer.from(base64, 'base64')] as const)
  const { url } = await serveFiles(new Map(files))
  for (const { name, viewport, colorScheme } of SCREENS) {
    for (const path of ['index.html', 'days.html']) {
      const visited = await visit(`${url}/${path}`, { viewport, colorScheme })
      await picture(visited.page, `exported-${path.replaceAll(/\W/g, '-')}-${name}`)
      expect([name, path, await flawsOf(visited)]).toEqual([name, path, []])
      const first = visited.page.locator('.item').first()
      if (path !== 'days.html') expect((await first.boundingBox())?.y).toBeLessThan(200)
    }
  }
})

test('the open Proof section is accessible, fits and has no error on every screen', async () => {
  const workspace = await signedWorkspace([AS_OF])
  const { url } = await listenLocally(
    openApp(workspace, { baseUrl: () => 'https://dash.a-long-name.example.org' }),
  )
  const at = formatInstant((await manifestsOf(workspace))[0]?.publishedAt ?? 0)
  for (const { name, viewport, colorScheme } of SCREENS) {
    const visited = await visit(`${url}/?sort=year&at=${at}`, { viewport, colorScheme })
    await visited.page.locator('#proof > summary').focus()
    await visited.page.keyboard.press('Enter')
    await visited.page.locator('.proof-files').waitFor()
    await picture(visited.page, `proof-${name}`)
    expect([name, await flawsOf(visited)]).toEqual([name, []])
    // Its commands are read as a whole, so that they can be typed.
    expect(await visited.page.evaluate<boolean>(ARE_WHOLE)).toBe(true)
  }
})

const ARE_WHOLE = `[...document.querySelectorAll('.proof pre')].every((pre) => pre.scrollWidth <= pre.clientWidth)`
