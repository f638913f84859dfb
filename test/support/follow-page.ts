import { spawnSync } from 'node:child_process'
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { TOOLS } from '../../src/server/docs/markdown.ts'
import { EXAMPLE_DASH, requestsSince } from './example-session.ts'
import type { ExampleSession, LoggedRequest, Ran } from './example-session.ts'
import { outputFlaw, parsed } from './example-output.ts'
import { commandsOf, isRun } from './examples.ts'
import type { Example } from './examples.ts'

/** What a page is followed with. */
export interface Surroundings {
  session: ExampleSession
  folder: string
  /** The server that is asked until the page starts one. */
  demo: { url: string; log: string }
  /** A local engine of models, in place of the one pages name. */
  provider: string
}

/** What came of a page. */
export interface Followed {
  /** What does not hold, a line each that begins with the place; the first in a shell ends the page. */
  flaws: string[]
  /** Which blocks were run, each with what it asked of the server. */
  ran: { example: Example; requests: LoggedRequest[] }[]
}

/** Where examples find a server, a host of somebody else's, and a local engine of models. */
const SERVER = /https?:\/\/(?:127\.0\.0\.1:3000|localhost:3000|dash\.example\.org)(?![\w.-])/g
const ENGINE = /http:\/\/127\.0\.0\.1:11434\/v1/g

/** Runs every block of a page that can run, in its order, as a reader would who follows the page in one terminal. */
export async function followPage(examples: readonly Example[], around: Surroundings): Promise<Followed> {
  const followed: Followed = { flaws: [], ran: [] }
  let last: Ran | null = null
  for (const example of examples) {
    const at = `${example.page}:${example.line}`
    if (example.file !== null) {
      writeFileSync(join(around.folder, example.file), example.text)
    } else if (example.isOutput) {
      const flaw: string | null = last && outputFlaw(example.language, example.text, last)
      if (flaw !== null) followed.flaws.push(`${at}: ${flaw}`)
    } else if (!isRun(example) || toolsOf(example).some((tool) => !isThere(tool))) {
      last = null
    } else {
      const { ran, flaw, requests } = await runBlock(example, around)
      last = ran
      followed.ran.push({ example, requests })
      if (flaw !== null) followed.flaws.push(`${at}: ${flaw}`)
      if (ran !== null && ran.code !== 0) break
    }
  }
  return followed
}

/** The programs an example cannot do without. */
function toolsOf({ language, needs }: Example): string[] {
  return [...needs.filter((need) => TOOLS.includes(need)), ...(language === 'python' ? ['python3'] : [])]
}

/** True for a program this machine has. */
export function isThere(tool: string): boolean {
  return spawnSync(tool, ['--version']).status === 0
}

interface Outcome {
  ran: Ran | null
  flaw: string | null
  requests: LoggedRequest[]
}

async function runBlock(example: Example, around: Surroundings): Promise<Outcome> {
  if (example.language === 'json') {
    return { ran: null, flaw: parsed(example.text) === undefined ? 'it is no JSON' : null, requests: [] }
  }
  const before = serverOf(around)
  const start = statSync(before.log).size
  const { ran, flaw } = await runText(example, around)
  if (flaw !== null) return { ran, flaw, requests: [] }
  const after = serverOf(around)
  const requests = await requestsSince(after.url, after.log, after.url === before.url ? start : 0)
  return { ran, flaw: refusalFlaw(example, requests), requests }
}

function serverOf({ session, demo }: Surroundings): { url: string; log: string } {
  const url = session.served()
  return url === null || !existsSync(session.serverLog) ? demo : { url, log: session.serverLog }
}

async function runText(example: Example, around: Surroundings): Promise<{ ran: Ran; flaw: string | null }> {
  const { session, folder, provider } = around
  const adapted = (text: string): string =>
    text
      .replaceAll(SERVER, serverOf(around).url)
      .replaceAll(ENGINE, provider)
      .replaceAll('sk-or-v1-the-key', 'test-key')
      .replaceAll('/usr/bin/node', process.execPath)
      .replaceAll('/opt/dash/dist/cli/main.js', EXAMPLE_DASH)
      .replaceAll('/srv/dash', folder)
  if (example.language === 'js')
    return judged(await session.program(process.execPath, 'example.mjs', adapted(example.text)))
  if (example.language === 'python')
    return judged(await session.program('python3', 'example.py', adapted(example.text)))
  let ran: Ran = { code: 0, stdout: '', stderr: '' }
  for (const { script, shown } of commandsOf(example)) {
    ran = await session.shell(adapted(script))
    const flaw = shown === null || shown.trim() === '' ? null : outputFlaw('text', shown, ran)
    if (ran.code !== 0 || flaw !== null) return { ran, flaw: judged(ran).flaw ?? flaw }
  }
  return { ran, flaw: null }
}

function judged(ran: Ran): { ran: Ran; flaw: string | null } {
  if (ran.code === 0) return { ran, flaw: null }
  const how = ran.code === null ? 'did not end by itself' : `ended with ${ran.code}`
  return { ran, flaw: `it ${how}\n${ran.stdout.slice(-2000)}${ran.stderr.slice(-2000)}` }
}

/** Questions are answered, unless the block says with which statuses they are refused; then each must come. */
function refusalFlaw({ refused }: Example, requests: readonly LoggedRequest[]): string | null {
  const unexpected = requests.find(({ status }) => status >= 400 && !refused.includes(status))
  if (unexpected) return `${unexpected.method} ${unexpected.path} was answered with ${unexpected.status}`
  const missing = refused.find((status) => !requests.some((request) => request.status === status))
  return missing === undefined ? null : `nothing was answered with ${missing}`
}
