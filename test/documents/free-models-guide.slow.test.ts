import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { sealRun } from '../../src/domain/models/stored-run.ts'
import { PROGRAM, serve, temporaryFolder } from '../support/dash.ts'
import { sampleCandidates, sampleRun } from '../support/free-models.ts'
import { shell, shellBlocks } from '../support/shell.ts'
import { openWorkspace } from '../support/workspace.ts'

/** The shell blocks of the guide: the questions, the poll, the command line. */
const [questions = '', poll = '', commands = ''] = shellBlocks('docs/free-models.md')

const hasTools = ['jq', 'curl'].every((tool) => spawnSync(tool, ['--version']).status === 0)

test.skipIf(!hasTools)('the questions of the guide are answered as it says', async () => {
  const workspace = await openWorkspace()
  const now = Date.now()
  const run = sampleRun({ now, candidates: sampleCandidates(now).slice(0, 2) })
  await workspace.recommendations.put(run.rankingVersion, sealRun(run))
  const { url } = await serve(['--data-dir', workspace.folder])
  const folder = temporaryFolder()
  const ask = (script: string) => shell(`base=${url}\n${script.replace(/^base=.*$/m, '')}`, folder, {})
  const { code, lines } = await ask(`${questions}\necho done`)
  expect(code).toBe(0)
  expect(lines).toEqual([
    'maker/good:free',
    expect.stringMatching(/^1\t\d+\tmaker\/good:free$/),
    ...run.notes,
    'done',
  ])

  expect((await ask(poll)).code).toBe(0)
  const kept = join(folder, 'top-models.json')
  expect(JSON.parse(readFileSync(kept, 'utf8'))).toMatchObject({ count: 2, seed: false })
  // Nothing changed since: nothing is downloaded and what was kept stays.
  const again = await ask(`${poll}\nls`)
  expect(again.lines).toEqual(['tag', 'top-models.json'])
  expect(existsSync(kept)).toBe(true)
})

test('the commands of the guide print what it says, and what is evaluated reaches the programs that follow', async () => {
  const workspace = await openWorkspace()
  const now = Date.now()
  const run = sampleRun({ now, candidates: sampleCandidates(now).slice(0, 2) })
  await workspace.recommendations.put(run.rankingVersion, sealRun(run))
  const own = commands.replace(/^.*--url.*$/m, '')
  expect(own).not.toBe(commands)
  const { code, lines } = await shell(
    `npx() { shift; "${process.execPath}" "${PROGRAM}" "$@"; }
${own}
sh -c 'echo "$OPENAI_BASE_URL" "$OPENAI_MODEL"'`,
    temporaryFolder(),
    { DASH_DATA_DIR: workspace.folder },
  )
  expect(code).toBe(0)
  expect(lines).toEqual([
    expect.stringMatching(/^maker\/good:free \(/),
    'maker/good:free',
    'https://openrouter.ai/api/v1 maker/good:free',
  ])
})
