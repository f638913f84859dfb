import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readWitnessPolicy } from '../../src/adapters/witnesses.ts'
import { LOG_VKEY, testWitness } from '../domain/year/log-vectors.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

async function policyFile(text: string | Uint8Array): Promise<string> {
  const path = join(await temporaryFolder(), 'witnesses')
  writeFileSync(path, text)
  return path
}

const line = (number: number, url = ''): string =>
  `witness w${number} ${testWitness(`w${number}`, number).vkey} ${url}\n`

describe('the policy file of witnesses', () => {
  test('a file names witnesses with and without submission URLs, groups and the quorum', async () => {
    const text = `# two of three\n${line(1, 'https://w1.example/a/')}${line(2, 'http://[::1]:80')}${line(3)}group all 2 w1 w2 w3\nquorum all\n`
    const policy = readWitnessPolicy(await policyFile(text))
    expect(policy.text).toBe(text)
    expect(policy.parties.map(({ key, url }) => [key.name, url])).toEqual([
      ['w1.example', 'https://w1.example/a/'],
      ['w2.example', 'http://[::1]:80'],
      ['w3.example', null],
    ])
  })

  const many = Array.from({ length: 16 }, (_, index) => line(index + 1, 'https://w.example')).join('')

  test.each([
    [
      'a line that is no rule',
      `${line(1, 'https://w.example')}quorum none\nsigner w2\n`,
      'line 3 begins with "signer"',
    ],
    [
      'the key of a log for a witness',
      `witness w1 ${LOG_VKEY} https://w.example\nquorum none\n`,
      'line 1 needs the verifier key of a witness',
    ],
    ['no quorum', line(1, 'https://w.example'), 'the quorum line is missing'],
    ['an undefined quorum', `${line(1, 'https://w.example')}quorum w2\n`, 'line 2 refers to "w2"'],
    ['a log', `log ${LOG_VKEY}\n${line(1, 'https://w.example')}quorum none\n`, 'it has a log line'],
    ['no submission URL', `${line(1)}quorum none\n`, 'no witness has a submission URL'],
    [
      'a submission URL with a user',
      `${line(1, 'https://me:secret@w.example')}quorum none\n`,
      'the URL of w1.example must be http or https',
    ],
    [
      'a submission URL of another scheme',
      `${line(1, 'ftp://w.example')}quorum none\n`,
      'the URL of w1.example must be http or https',
    ],
    ['16 witnesses', `${many}quorum none\n`, 'it has 16 witnesses; keep at most 15'],
    ['invalid UTF-8', Buffer.of(0xff), 'cannot be read'],
  ])('a file with %s is refused with the reason', async (_what, text, reason) => {
    const path = await policyFile(text)
    const detail = expect.stringContaining(reason) as string
    expect(() => readWitnessPolicy(path)).toThrow(
      expect.objectContaining({ code: 'configuration', detail }) as Error,
    )
  })

  test('a missing file is refused', () => {
    expect(() => readWitnessPolicy('/nowhere/witnesses')).toThrow(
      expect.objectContaining({ code: 'configuration' }) as Error,
    )
  })
})
