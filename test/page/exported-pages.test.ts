import { expect, test } from 'vitest'
import { addDays } from '../../src/domain/time.ts'
import { exportedPages } from '../../src/server/page/year/exported-pages.ts'
import { exportFolder, exportTo, signedWorkspace } from '../support/exports.ts'
import { serveFiles } from '../support/static-host.ts'
import { AS_OF } from '../support/workspace.ts'
import { flawsOf, picture, SCREENS, visit } from './browser.ts'

const NEXT = addDays(AS_OF, 1)

/** Serves an export with pages below a path, and returns the address of its root. */
async function serveExport(): Promise<string> {
  const workspace = await signedWorkspace([AS_OF, NEXT])
  const { path, tree } = exportFolder(workspace)
  await exportTo(workspace, tree, { pagesOf: exportedPages })
  return `${(await serveFiles(path)).url}/`
}

test('exported pages are accessible, fit and have no error on every screen, with the first story within 200 pixels', async () => {
  const site = await serveExport()
  for (const { name, viewport, colorScheme } of SCREENS) {
    for (const path of ['index.html', 'days.html']) {
      const visited = await visit(site + path, { viewport, colorScheme })
      await picture(visited.page, `exported-${path.replaceAll(/\W/g, '-')}-${name}`)
      expect([name, path, await flawsOf(visited)]).toEqual([name, path, []])
      const first = visited.page.locator('.item').first()
      if (path !== 'days.html') expect((await first.boundingBox())?.y).toBeLessThan(200)
    }
  }
})
