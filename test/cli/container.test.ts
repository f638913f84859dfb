import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Container } from '../../src/cli/container.ts'
import { prepareFolders } from '../../src/cli/data-folder.ts'
import { readConfig } from '../../src/cli/settings/read-config.ts'
import type { FeedStore } from '../../src/domain/ports.ts'
import { openDescriptors, temporaryFolder } from '../support/temporary-folder.ts'

async function openServer(): Promise<{ container: Container; folder: string }> {
  const folder = temporaryFolder()
  const config = readConfig({ dataDir: folder }, {}, folder)
  prepareFolders(config, true)
  const container = new Container({ config, version: '0', kind: 'server' })
  onTestFinished(() => container.close())
  return { container, folder }
}

test('the agent reads through read-only connections', async () => {
  const { container } = await openServer()
  const reads = await container.agentReads()
  expect(Object.keys(reads.objects)).toEqual(['get', 'newestHead', 'objectChangeToken', 'headChangeToken'])
  const writer = reads.feed as unknown as FeedStore
  const saving = writer.saveSnapshot(
    { snapshot: { id: 'feed-x', generatedAt: 0, feeds: [] }, payloads: new Map(), feeds: [] },
    { discardLater: true },
  )
  await expect(saving).rejects.toThrow('is read-only and accepts only SELECT')
})

test('all parts of a container share one connection to each database', async () => {
  const { container, folder } = await openServer()
  await (await container.ledger()).ping()
  await (await container.year()).read()
  await (await container.feed()).ping()
  await (await container.feed()).newestSnapshot()
  await (await container.chatLedger()).ping()
  await (await container.audits()).newest()
  await (await container.jobs()).states()
  const connections = ['ledger', 'feed', 'state'].map((name) => openDescriptors(join(folder, `${name}.db`)))
  expect(connections).toEqual([1, 1, 1])
})
