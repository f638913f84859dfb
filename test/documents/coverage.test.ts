import { describe, expect, test } from 'vitest'
import { EXIT } from '../../src/cli/exit-codes.ts'
import { openApp } from '../support/api-client.ts'
import { interfacesOf } from '../support/interfaces.ts'
import { read, rowsOf, sectionOf } from '../support/pages-of-documents.ts'
import { openWorkspace } from '../support/workspace.ts'

describe('the documents name', () => {
  test('every path the server answers, in the API guide', async () => {
    const app = openApp(await openWorkspace())
    const guide = read('docs/api.md')
    const paths = app['~routes'].map(({ route }) => route ?? '')
    const isGuide = (path: string): boolean =>
      path.startsWith('/docs/') && !path.startsWith('/docs/api/') && !path.includes(':')
    const named = paths.filter(
      (path) => !isGuide(path) && !path.startsWith('/assets/') && !path.endsWith('/**'),
    )
    expect(named.length).toBeGreaterThan(20)
    const missing = named.filter(
      (path) =>
        !guide.includes(`\`${path}\``) &&
        !guide.includes(`\`${path}?`) &&
        !/^\/docs\/api\/[\w-]+(\/try)?$/.test(path),
    )
    expect(missing).toEqual([])
  })

  test('every refusal of every interface, with its status, cause and what to do', async () => {
    const interfaces = await interfacesOf(openApp(await openWorkspace()))
    expect(interfaces.length).toBeGreaterThan(4)
    for (const { name, heading, refusals } of interfaces) {
      const section = sectionOf('docs/troubleshooting.md', `### ${heading}`)
      expect(refusals.length).toBeGreaterThan(2)
      for (const { status, error } of refusals) {
        const row = new RegExp(
          `^\\| ${status} +\\| \`${error}\` +\\| [^|]*\\w[^|]* \\| [^|]*\\w[^|]* \\|$`,
          'm',
        )
        expect(section, `${name}: ${status} ${error}`).toMatch(row)
      }
    }
  })

  test('no refusal that no interface gives', async () => {
    const interfaces = await interfacesOf(openApp(await openWorkspace()))
    for (const { name, heading, refusals } of interfaces) {
      const given = refusals.map(({ status, error }) => `${status} ${error}`)
      const told = [
        ...sectionOf('docs/troubleshooting.md', `### ${heading}`).matchAll(/^\| (\d{3}) +\| `(\w+)` /gm),
      ]
      const beside = name === 'agent-chat' ? ['404 not_found'] : []
      expect(told.map(([, status, error]) => `${status} ${error}`).sort()).toEqual(
        [...given, ...beside].sort(),
      )
    }
  })

  test('every way an answer of the chat can end, with what to do', () => {
    const union = /type FailureCode =([^]*?)\n\n/.exec(read('src/domain/agent/model-call.ts'))?.[1] ?? ''
    const codes = [...union.matchAll(/['`](\w+?)(?:\$\{number\})?['`]/g)].map(([, code = '']) => code)
    expect(codes.length).toBeGreaterThan(8)
    for (const code of codes) {
      expect(read('docs/agent-chat.md'), code).toContain(
        `\`${code.endsWith('_') ? `${code}<status>` : code}\``,
      )
      expect(sectionOf('docs/chat-providers.md', '## What can go wrong'), code).toContain(`\`${code}`)
    }
  })

  test('every exit code, with what to do', () => {
    const codes = rowsOf('docs/troubleshooting.md').flatMap(([code = '', cause = '', mend = '']) =>
      /^\d+(, \d+)*$/.test(code) && cause.length > 3
        ? code.split(', ').map((each) => ({ code: Number(each), mend }))
        : [],
    )
    const ofCommands = codes.filter(({ code }) => code < 400)
    expect(ofCommands.map(({ code }) => code).sort((a, b) => a - b)).toEqual(
      Object.values(EXIT).sort((a, b) => a - b),
    )
    for (const { code, mend } of ofCommands)
      expect([code, code === EXIT.done || mend.length > 3]).toEqual([code, true])
  })

  test('every finding of an audit, with what to do', () => {
    const union = /type FindingCode =([^]*?)\n\n/.exec(read('src/domain/year/finding.ts'))?.[1] ?? ''
    const codes = [...union.matchAll(/'(\w+)'/g)].map(([, code = '']) => code)
    expect(codes.length).toBeGreaterThan(8)
    for (const code of codes) {
      const [, cause = '', mend = ''] = rowsOf('docs/auditing.md', `\`${code}\``)[0] ?? []
      expect([code, cause.length > 3, mend.length > 3]).toEqual([code, true, true])
    }
  })
})
