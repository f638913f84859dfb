import { describe, expect, test } from 'vitest'
import { formatInstant } from '../../../src/domain/time.ts'
import { staticObjectPath } from '../../../src/domain/year/log/static-layout.ts'
import {
  COSIGNED_CHECKPOINT,
  LOG_VKEY,
  PROOF_OF_C,
  SIGNED_CHECKPOINT,
} from '../../domain/year/log-vectors.ts'
import { openApp } from '../../support/api-client.ts'
import { requestRoute } from '../../support/contract-client.ts'
import { importSample } from '../../support/legacy-archive.ts'
import { signedLogIn } from '../../support/signed-log.ts'
import { AS_OF, openWorkspace, publishDays, sampleSignals } from '../../support/workspace.ts'

interface Check {
  what: string
  ok: boolean | null
}

const script = new URL('../../../assets/page/check-proof.js', import.meta.url).href
const { checkPublication } = (await import(script)) as {
  checkPublication(bytes: Uint8Array, proofText: string, policyText: string): Promise<Check[]>
}

const POLICY = `log ${LOG_VKEY} https://dash.example/year\nquorum none\n`
const MALFORMED = [{ what: 'The proof file is well-formed.', ok: false }]

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)
const verdictsOf = (checks: readonly Check[]): (boolean | null)[] => checks.map(({ ok }) => ok)

describe('the proof file of a line that is no entry of a ledger', () => {
  const check = (proof: string, policy = POLICY) => checkPublication(bytesOf('c'), proof, policy)

  test('its inclusion and signature are valid, its line is not', async () => {
    expect(verdictsOf(await check(PROOF_OF_C))).toEqual([false, true, true, null])
  })

  test('the signatures of witnesses are ignored', async () => {
    const cosigned = PROOF_OF_C.replace(SIGNED_CHECKPOINT, COSIGNED_CHECKPOINT)
    expect(verdictsOf(await check(cosigned))).toEqual([false, true, true, null])
  })

  test.each([
    ['a policy with another key', POLICY.replace('dash.example/year+', 'dash.example/other+')],
    ['a policy with a key that does not match its id', POLICY.replace('+217a88b8+', '+217a88b9+')],
    ['no policy', ''],
  ])('%s does not confirm the signature', async (_what, policy) => {
    expect(verdictsOf(await check(PROOF_OF_C, policy))).toEqual([false, true, false, null])
  })

  test.each([
    ['index 2', 'index 1'],
    ['index 2', 'index 3'],
    ['sTeYX', 'sTeYY'],
    ['extra Yw==', 'extra Yg=='],
    ['\nsTeYX/SE+2ANuTEHx3sDZcgNePW0Kd7Q/Zc2HQd5mes=', ''],
  ])('with %j replaced by %j, the inclusion is not valid', async (from, to) => {
    expect(verdictsOf(await check(PROOF_OF_C.replace(from, to)))).toEqual([false, false, true, null])
  })

  test.each([
    ['\n3\n', '\n4\n'],
    ['NmQuc8', 'NmQuc9'],
    ['IXqIuFaM', 'IXqIuFaN'],
  ])('with %j replaced by %j, the signature is not valid', async (from, to) => {
    expect((await check(PROOF_OF_C.replace(from, to)))[2]?.ok).toBe(false)
  })

  test.each([
    ['index 2', 'index 02'],
    ['index 2', 'index -2'],
    ['extra Yw==', 'extra Yx=='],
    ['extra Yw==', 'extra Yw'],
    ['d5mes=', 'd5me'],
    ['\n3\n', '\n03\n'],
    ['@v1', '@v2'],
    ['\n\n', '\n'],
    ['VVNKOYMg4=', 'VVNKOYMg4'],
    ['NmQuc8JUCrEh46a/lUWwokmCzYMOsT080Z3jzmwCHsE=', 'AAAA'],
  ])('with %j replaced by %j, the file is malformed', async (from, to) => {
    expect(await check(PROOF_OF_C.replaceAll(from, to))).toEqual(MALFORMED)
  })

  test.each(['', '{}', 'null', '{"proofs":[],"legacy":""}', '[1]'])('%j is malformed', async (text) => {
    expect(await check(text)).toEqual(MALFORMED)
  })
})

interface Served {
  bytes: Uint8Array
  proof: string
  policy: string
}

/** The files of an own publication and of one of the legacy ledger, as a server serves them. */
async function served(): Promise<{ own: Served; legacy: Served }> {
  const workspace = await openWorkspace()
  await importSample(workspace)
  await workspace.feed.importSignals(sampleSignals())
  await publishDays({ ...workspace, log: signedLogIn(workspace.folder) }, [AS_OF])
  const app = openApp(workspace)
  const { timeline } = (await workspace.year.read()).proved
  const filesOf = async (item = timeline[0]): Promise<Served> => {
    if (!item) throw new Error('nothing is published')
    const { bytes } = await requestRoute(app, `/${staticObjectPath(item.manifest.sha256)}`)
    const { text } = await requestRoute(
      app,
      `/tlog/year/proof?at=${formatInstant(item.manifest.publishedAt)}`,
    )
    return { bytes, proof: text, policy: (await requestRoute(app, '/tlog/year/policy')).text }
  }
  return {
    own: await filesOf(timeline.at(-1)),
    legacy: await filesOf(timeline.find(({ ledger }) => ledger === 'v1')),
  }
}

describe('the served files', () => {
  const check = async ({ bytes, proof, policy }: Served) =>
    verdictsOf(await checkPublication(bytes, proof, policy))

  test('a publication is proved by its proof file, a legacy one by the seal of its ledger', async () => {
    const { own, legacy } = await served()
    expect(await check(own)).toEqual([true, true, true, null])
    expect(await check(legacy)).toEqual([true, true, true, true, null])
  })

  test('one changed byte of a publication, the proof of another one and a changed legacy ledger are noticed', async () => {
    const { own, legacy } = await served()
    const damaged = ({ bytes, ...others }: Served): Served => ({
      ...others,
      bytes: Uint8Array.from(bytes, (byte, index) => (index === 100 ? byte ^ 1 : byte)),
    })
    expect(await check(damaged(own))).toEqual([false, true, true, null])
    expect(await check(damaged(legacy))).toEqual([false, true, true, true, null])
    expect(await check({ ...own, bytes: legacy.bytes })).toEqual([false, true, true, null])
    const parsed = JSON.parse(legacy.proof) as { legacy: string }
    const longer = JSON.stringify({ ...parsed, legacy: `${parsed.legacy}\n[]` })
    expect(await check({ ...legacy, proof: longer })).toEqual([true, false, true, true, null])
  })
})
