import { expect, test } from 'vitest'
import { formatInstant } from '../../src/domain/time.ts'
import { listenLocally, openApp } from '../support/api-client.ts'
import { signedWorkspace } from '../support/exports.ts'
import { AS_OF, manifestsOf } from '../support/workspace.ts'
import { flawsOf, picture, SCREENS, visit } from './browser.ts'

/** The page of a publication at a server with a signed log. */
async function serveLog(): Promise<string> {
  const workspace = await signedWorkspace([AS_OF])
  const { url } = await listenLocally(openApp(workspace))
  const [manifest] = await manifestsOf(workspace)
  const at = formatInstant(manifest?.publishedAt ?? 0)
  return `${url}/?sort=year&at=${at}`
}

test('the open Proof section is accessible, fits and has no error on every screen', async () => {
  const own = await serveLog()
  for (const { name, viewport, colorScheme } of SCREENS) {
    const visited = await visit(own, { viewport, colorScheme })
    await visited.page.locator('#proof > summary').focus()
    await visited.page.keyboard.press('Enter')
    await visited.page.locator('.proof-files').waitFor()
    await picture(visited.page, `proof-${name}`)
    expect([name, await flawsOf(visited)]).toEqual([name, []])
  }
})
