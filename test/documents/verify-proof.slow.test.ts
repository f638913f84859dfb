import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { addDays, formatInstant } from '../../src/domain/time.ts'
import { formatPolicy, signerKey } from '../../src/domain/year/log/signed-note.ts'
import { openApp } from '../support/api-client.ts'
import { requestHistory, requestRoute } from '../server/contract-client.ts'
import { LOG_NAME, signedLogIn } from '../support/signed-log.ts'
import { AS_OF, openWorkspace, publishDays, sampleSignals } from '../support/workspace.ts'

const SCRIPT = fileURLToPath(new URL('../../docs/verify-proof.sh', import.meta.url))

/** Runs the script; returns its exit code and its output. */
function verify(
  cwd: string,
  file: string,
  proof: string,
  policy: string,
): [code: number | null, output: string] {
  const { status, stdout, stderr } = spawnSync('sh', [SCRIPT, file, proof, policy], { cwd, encoding: 'utf8' })
  return [status, stdout + stderr]
}

test('the script proves every publication with openssl alone, and refuses each changed file', async () => {
  const workspace = await openWorkspace()
  // The days between are gaps, so that the tree has seven entries.
  const days = [0, 2, 3, 6].map((count) => addDays(AS_OF, count))
  for (const day of days) await workspace.feed.importSignals(sampleSignals(day))
  await publishDays({ ...workspace, log: signedLogIn(workspace.folder) }, days)
  const app = openApp(workspace)
  const cwd = join(workspace.folder, 'verified')
  mkdirSync(cwd)
  const write = (name: string, content: Uint8Array | string): string => {
    writeFileSync(join(cwd, name), content)
    return name
  }
  const policy = (await requestRoute(app, '/tlog/year/policy')).text
  write('policy', policy)
  const { timeline } = (await workspace.year.read()).proved
  const proofs: string[] = []
  for (const { manifest, seq } of timeline) {
    const at = formatInstant(manifest.publishedAt)
    write(`${seq}.json`, (await requestHistory(app, `?sort=year&at=${at}`)).bytes)
    proofs.push((await requestRoute(app, `/tlog/year/proof?at=${at}`)).text)
    write(`${seq}.tlog-proof`, proofs.at(-1) ?? '')
    expect(verify(cwd, `${seq}.json`, `${seq}.tlog-proof`, 'policy')).toEqual([
      0,
      `OK: the file with the SHA-256 ${manifest.sha256} is entry ${seq} of 7 of the log ${LOG_NAME}\n`,
    ])
  }
  const proof = proofs.at(-1) ?? ''
  const refused = (changed: string, otherPolicy = 'policy', file = '7.json'): string => {
    const [code, output] = verify(cwd, file, write('changed', changed), otherPolicy)
    expect(code).toBe(1)
    return output
  }
  expect(refused(proof, 'policy', '1.json')).toMatch(/^FAILED: entry 7 is not of a file with the SHA-256 /)
  expect(refused(proof.replace('index 6', 'index 5'))).toMatch(/^FAILED: entry 6 is not of a file/)
  expect(refused(proof.replace('index 6', 'index 7'))).toBe('FAILED: a tree of 7 entries has no entry 7\n')
  const hash = /^[\w+/]{43}=$/m.exec(proof)?.[0] ?? ''
  expect(refused(proof.replace(hash, `${'A'.repeat(43)}=`))).toBe(
    'FAILED: entry 7 is not in the tree of the checkpoint\n',
  )
  expect(refused(proof.replace(`${hash}\n`, ''))).toBe('FAILED: the proof has too few hashes\n')
  expect(refused(proof.replace(hash, `${hash}\n${hash}\n${hash}`))).toBe(
    'FAILED: the proof has too many hashes\n',
  )
  expect(refused(proof.replace(/.{12}\n$/, 'AAAAAAAAAAA=\n'))).toBe(
    `FAILED: the signature of ${LOG_NAME} is invalid\n`,
  )
  write('other', formatPolicy([signerKey(LOG_NAME, new Uint8Array(32).fill(8))], null))
  expect(refused(proof, 'other')).toBe(`FAILED: no key of ${LOG_NAME} in the policy signed the checkpoint\n`)
  expect(refused('{"proofs":[]}')).toBe('FAILED: this is not a proof file\n')
})
