import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readConfig } from '../../../src/cli/settings/read-config.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

test.each([
  [{ OPENAI_API_KEY: 'Sesame' }, 'OPENAI_API_KEY_FILE=missing', null],
  [{ OPENAI_API_KEY_FILE: '/dev/null' }, 'OPENAI_API_KEY=a', 'OPENAI_API_KEY_FILE="/dev/null" is empty'],
  [{ OPENAI_API_KEY: '' }, 'OPENAI_API_KEY_FILE=missing', 'OPENAI_API_KEY_FILE="missing" cannot be read'],
  [{}, 'OPENAI_API_KEY=a\nOPENAI_API_KEY_FILE=b', 'are both set'],
])(
  'a secret of the environment %j overrides both forms of it in the env file %j',
  async (env, text, error) => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, '.env'), text)
    const config = expect(() => readConfig({}, env, folder))
    if (error === null) config.not.toThrow()
    else config.toThrow(error)
  },
)

test('a bad secret from a file is refused with the name of the file', async () => {
  const folder = temporaryFolder()
  const path = join(folder, 'key')
  writeFileSync(path, 'two words')
  writeFileSync(join(folder, '.env'), `GITHUB_TOKEN_FILE=${path}`)
  expect(() => readConfig({}, {}, folder)).toThrow(
    `GITHUB_TOKEN=(not shown) from GITHUB_TOKEN_FILE="${path}" in ${join(folder, '.env')} must be`,
  )
})
