import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { builtModule } from '../support/compiled-sources.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { runScript } from './script-process.ts'

test('the end of a process is awaited, even if its response arrives after the kill', async () => {
  const script = join(temporaryFolder(), 'worker.mjs')
  // A large process takes a while to end.
  const large = 'globalThis.kept = Buffer.alloc(500_000_000, 1)'
  writeFileSync(script, `${large}; process.on('message', (m) => process.send(m)); process.send('ready')`)
  const user = runScript(
    `const { workerProcess } = await import(${JSON.stringify(builtModule('adapters/worker-process.js'))})
    const options = { name: 'worker', startMs: 30_000, execArgv: [] }
    const worker = workerProcess(new URL(${JSON.stringify(`file://${script}`)}), options)
    await worker.request(1, 5_000)
    void worker.request(2, 5_000).catch(() => undefined)
    // The response arrives while this thread is blocked.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300)
    await worker.end()
    console.log('ended')`,
    [],
  )
  expect(await user.line()).toBe('ended')
  expect(await user.ended).toMatchObject({ code: 0, errors: '' })
})
