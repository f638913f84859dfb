import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { addDays } from '../../../src/domain/time.ts'
import type { StaticTree } from '../../../src/domain/year/ports.ts'
import type { LogFile } from '../../../src/domain/year/log/log-history.ts'
import { staticHeadersText, staticObjectPath } from '../../../src/domain/year/log/static-layout.ts'
import { importArchive } from '../../../src/jobs/import-archive.ts'
import { exportedPages } from '../../../src/server/page/year/exported-pages.ts'
import { signLedger } from '../../../src/jobs/sign-checkpoint.ts'
import { openApp } from '../../support/api-client.ts'
import { requestRoute } from '../../server/contract-client.ts'
import { exportFolder, exportTo, publishSigned, signedWorkspace } from '../../support/exports.ts'
import type { SignedWorkspace } from '../../support/exports.ts'
import { atEachEffect, FaultPlan, unlessStruck } from '../faults.ts'
import { importPortsOf, SAMPLE_ARCHIVE } from '../../support/legacy-archive.ts'
import { signedLogIn } from '../../support/signed-log.ts'
import { filesOfFolder } from '../../support/temporary-folder.ts'
import {
  AS_OF,
  objectFile,
  openWorkspace,
  publishedWorkspace,
  publishPortsOf,
} from '../../support/workspace.ts'

/** Published days; the third day is a gap. */
const DAYS = [0, 1, 3].map((index) => addDays(AS_OF, index))
const NEXT_DAY = addDays(AS_OF, 4)

const CHECKPOINT = 'tlog/year/checkpoint'

/** Reads a file of an export as text. */
const readText = (path: string, name: string): string => readFileSync(join(path, name), 'utf8')

const sizeIn = (path: string): number => Number(readText(path, CHECKPOINT).split('\n')[1])

/** Paths and bytes of what a server sends for the files of an export. */
async function servedFiles(
  workspace: SignedWorkspace,
  names: readonly string[],
): Promise<Record<string, string>> {
  const app = openApp(workspace)
  const served: Record<string, string> = {}
  for (const name of names) {
    const sha256 = /^objects\/.*\/([\da-f]{64})\.json$/.exec(name)?.[1]
    const apiPaths: Record<string, string> = {
      'index.json': '/api/feed/history/index',
      'ledger/legacy.ndjson': '/api/feed/history/ledger/legacy',
    }
    if (name === '_headers') served[name] = Buffer.from(staticHeadersText()).toString('base64')
    else if (sha256 !== undefined)
      served[name] = Buffer.from((await workspace.objects.get(sha256)) ?? []).toString('base64')
    else {
      const { status, bytes } = await requestRoute(app, apiPaths[name] ?? `/${name}`)
      served[name] = status === 200 ? bytes.toString('base64') : `${status}`
    }
  }
  return served
}

const WITH_PAGES = { pagesOf: exportedPages }

/** Links of pages to files below a folder of the export that are not there. */
function brokenLinks(files: Record<string, string>, below: string): string[] {
  const site = 'http://host.example/some/path/'
  return Object.entries(files).flatMap(([path, base64]) => {
    if (!path.endsWith('.html')) return []
    const page = Buffer.from(base64, 'base64').toString()
    return [...page.matchAll(/ href="([^"#]+)"/g)]
      .map(([, href = '']) => new URL(href, site + path).href)
      .filter((url) => url.startsWith(site + below) && !(url.slice(site.length) in files))
  })
}

/** A workspace whose newest note covers this many entries, like a restored older copy. */
async function upTo(workspace: SignedWorkspace, size: number): Promise<SignedWorkspace> {
  const files = await workspace.objects.logFiles.list()
  return withLogFiles(
    workspace,
    files.filter((file) => file.kind === 'policy' || file.size <= size),
  )
}

/** Returns a workspace whose log has only some of its files. */
function withLogFiles(workspace: SignedWorkspace, files: LogFile[]): SignedWorkspace {
  const { objects } = workspace
  const logFiles = { ...objects.logFiles, list: () => Promise.resolve(files) }
  return { ...workspace, objects: { ...objects, logFiles } }
}

describe('an export', () => {
  test('an export holds every file that the server serves, byte for byte', async () => {
    const workspace = await signedWorkspace(DAYS)
    const { path, tree } = exportFolder(workspace)
    const report = await exportTo(workspace, tree)
    const { rows } = await workspace.ledger.read()
    const files = filesOfFolder(path)
    const tiles = ['0', 'entries'].flatMap((level) =>
      [1, 2, 3, 4].map((width) => `tlog/year/tile/${level}/000.p/${width}`),
    )
    const objects = rows.flatMap(({ sha256 }) => (sha256 === null ? [] : [staticObjectPath(sha256)]))
    const others = ['_headers', 'index.json', CHECKPOINT, 'tlog/year/policy']
    expect(Object.keys(files).sort()).toEqual([...others, ...tiles, ...objects].sort())
    expect(files).toEqual(await servedFiles(workspace, Object.keys(files)))
    const { origin, root } = await workspace.log.signer.lastSigned()
    expect(report).toEqual({
      files: 15,
      written: 15,
      unchanged: 0,
      bytes: Object.values(files).reduce((sum, text) => sum + Buffer.from(text, 'base64').length, 0),
      checkpoint: { origin, size: 4 },
      root: Buffer.from(root).toString('hex'),
      unsigned: 0,
      durationMs: expect.any(Number) as unknown,
    })
  })

  test('an export of an archive with a legacy ledger holds the legacy ledger and its objects', async () => {
    const opened = await openWorkspace(() => Date.now() + 60_000)
    await importArchive(importPortsOf(opened, SAMPLE_ARCHIVE))
    const workspace = { ...opened, log: signedLogIn(opened.folder) }
    await signLedger({ ...publishPortsOf(workspace), log: workspace.log })
    const { path, tree } = exportFolder(workspace)
    const { written } = await exportTo(workspace, tree)
    const files = filesOfFolder(path)
    expect(Object.keys(files)).toHaveLength(written)
    expect(Object.keys(files).filter((name) => name.startsWith('objects/'))).toHaveLength(6)
    expect(files['ledger/legacy.ndjson']).not.toBe('')
    expect(files).toEqual(await servedFiles(workspace, Object.keys(files)))
  })

  test('an export during a publication ends at the checkpoint that was signed before', async () => {
    const workspace = await signedWorkspace(DAYS)
    await publishSigned({ ...workspace, log: null as never }, [NEXT_DAY])
    const { path, tree } = exportFolder(workspace)
    expect(await exportTo(workspace, tree)).toMatchObject({ checkpoint: { size: 4 }, written: 15 })
    expect(Object.keys(filesOfFolder(path))).not.toContain('tlog/year/tile/0/000.p/5')
    const publications = [expect.anything(), expect.anything(), expect.anything()]
    expect(JSON.parse(readText(path, 'index.json'))).toMatchObject({ head: { seq: 4 }, publications })
  })

  test('an export that another export with a newer checkpoint overtakes starts again and keeps it', async () => {
    const workspace = await signedWorkspace(DAYS)
    const { path, tree } = exportFolder(workspace)
    let isOvertaken = false
    const overtake = async (): Promise<void> => {
      isOvertaken = true
      await publishSigned(workspace, [NEXT_DAY])
      await exportTo(workspace, tree)
    }
    const slow: StaticTree = {
      ...tree,
      put: async (name, bytes) => {
        await tree.put(name, bytes)
        if (!isOvertaken && name.startsWith('tlog/year/tile/0')) await overtake()
      },
    }
    expect(await exportTo(workspace, slow)).toMatchObject({
      checkpoint: { size: 5 },
      written: 0,
    })
    expect(sizeIn(path)).toBe(5)
  })

  test.each(['tlog/year/policy', 'index.json', CHECKPOINT])(
    'an export that is slow before it replaces %s does not take a newer export back',
    async (slow) => {
      const workspace = await signedWorkspace(DAYS.slice(0, 2))
      const { path, tree } = exportFolder(workspace)
      // Only the first export writes the policy.
      if (slow !== 'tlog/year/policy') await exportTo(workspace, tree)
      await publishSigned(workspace, [NEXT_DAY, addDays(NEXT_DAY, 1)])
      let newest: Record<string, string> | null = null
      const paused: StaticTree = {
        ...tree,
        async replace(name, before, bytes) {
          if (name === slow && newest === null) {
            await exportTo(workspace, tree)
            newest = filesOfFolder(path)
          }
          return tree.replace(name, before, bytes)
        },
      }
      await expect(exportTo(await upTo(workspace, 5), paused)).rejects.toMatchObject({
        code: 'storage_damaged',
        detail: expect.stringMatching(/^tlog\/year\/checkpoint in the target has \d+ entries/) as unknown,
      })
      expect(newest).not.toBeNull()
      expect(filesOfFolder(path)).toEqual(newest)
    },
  )

  test('an export with pages after another publication writes its page, the one before and what lists them', async () => {
    const workspace = await signedWorkspace(DAYS)
    const { path, tree } = exportFolder(workspace)
    await exportTo(workspace, tree, WITH_PAGES)
    const first = filesOfFolder(path)
    expect(brokenLinks(first, '')).toEqual([])
    await publishSigned(workspace, [NEXT_DAY])
    const written: string[] = []
    const recording: StaticTree = {
      ...tree,
      put: (name, ...rest) => (written.push(name), tree.put(name, ...rest)),
      replace: (name, ...rest) => (written.push(name), tree.replace(name, ...rest)),
    }
    await exportTo(workspace, recording, WITH_PAGES)
    expect(written.filter((name) => !/^(?:tlog\/year\/tile|objects)\//.test(name))).toEqual([
      `year/${NEXT_DAY}.html`,
      `year/${DAYS.at(-1)}.html`,
      'index.json',
      'days.html',
      'atom.xml',
      'rss.xml',
      'feed.json',
      'index.html',
      CHECKPOINT,
    ])
    const second = filesOfFolder(path)
    expect(
      Object.keys(second)
        .filter((name) => first[name] !== undefined && first[name] !== second[name])
        .sort(),
    ).toEqual(written.filter((name) => first[name] !== undefined).sort())
    expect(brokenLinks(second, '')).toEqual([])
    written.length = 0
    await exportTo(workspace, recording, WITH_PAGES)
    expect(written).toEqual([])
  })

  test.each([
    ['a new export', false],
    ['an older export', true],
  ])(
    'a fault at any effect of %s leaves no checkpoint or page without its files, and the next export continues',
    async (_base, hasOlder) => {
      const workspace = await signedWorkspace(DAYS.slice(0, 2))
      const older = await upTo(workspace, 1)
      const opened = async (name: string): Promise<ReturnType<typeof exportFolder>> => {
        const folder = exportFolder(workspace, name)
        if (hasOlder) await exportTo(older, folder.tree, WITH_PAGES)
        return folder
      }
      const complete = await opened('complete')
      const clean = new FaultPlan(null)
      await exportTo(workspace, clean.wrap('tree', complete.tree), WITH_PAGES)
      const expected = filesOfFolder(complete.path)
      await atEachEffect(clean.effects, 10, async (fault) => {
        const { path, tree } = await opened(`cut-${fault.effect}-${fault.kind}`)
        const struck = new FaultPlan(fault).wrap('tree', tree)
        expect(await unlessStruck(exportTo(workspace, struck, WITH_PAGES))).toBeNull()
        const files = filesOfFolder(path)
        if (files[CHECKPOINT] === expected[CHECKPOINT]) expect(files).toEqual(expected)
        // Nothing leads to the pages of a new export before its list of days.
        if ('days.html' in files) expect(brokenLinks(files, 'year/')).toEqual([])
        await exportTo(workspace, tree, WITH_PAGES)
        expect(filesOfFolder(path)).toEqual(expected)
        rmSync(path, { recursive: true, force: true })
      })
    },
  )
})

describe('the refusal of an export', () => {
  type Exported = Parameters<typeof exportTo>[0]
  /** Prepares a target, or an archive in place of the signed one. */
  type Prepare = (workspace: SignedWorkspace, target: ReturnType<typeof exportFolder>) => unknown

  const unsigned: Prepare = () => publishedWorkspace([AS_OF])
  const unnamed: Prepare = async (workspace) => {
    const files = await workspace.objects.logFiles.list()
    return withLogFiles(
      workspace,
      files.filter(({ kind }) => kind !== 'policy'),
    )
  }
  const damaged: Prepare = async (workspace) => {
    const { rows } = await workspace.ledger.read()
    for (const { sha256 } of rows) writeFileSync(objectFile(workspace, sha256 ?? ''), '{}')
  }
  const newer: Prepare = async (workspace, { tree }) => {
    await publishSigned(workspace, [addDays(AS_OF, 2)])
    await exportTo(workspace, tree)
    return upTo(workspace, 2)
  }
  const forked: Prepare = async (_workspace, { tree }) =>
    void (await exportTo(await signedWorkspace([DAYS[1] ?? '']), tree))
  const otherLog: Prepare = async (_workspace, { tree }) => {
    const other = await publishedWorkspace([AS_OF])
    await publishSigned({ ...other, log: signedLogIn(other.folder, 'other.example/tlog/year') }, [NEXT_DAY])
    await exportTo(other, tree)
  }
  const file =
    (name: string): Prepare =>
    (_workspace, { path }) => {
      mkdirSync(dirname(join(path, name)), { recursive: true })
      writeFileSync(join(path, name), 'mine')
    }

  test.each<[what: string, prepare: Prepare, code: string, why: RegExp]>([
    ['an unsigned archive', unsigned, 'configuration', /dash log-key new.*dash checkpoint/],
    ['a log without a policy', unnamed, 'archive_damaged', /no policy is stored; run dash checkpoint/],
    ['a damaged object', damaged, 'archive_damaged', /has 2 bytes instead of/],
    ['a newer target', newer, 'storage_damaged', /has 3 entries, the newest .* only 2/],
    ['a target with another history', forked, 'storage_damaged', /belongs to another history/],
    ['a target of another log', otherLog, 'copy_refused', /other\.example\/tlog.*dash\.example\/tlog/],
    ['an unreadable checkpoint', file(CHECKPOINT), 'storage_damaged', /is not a signed checkpoint/],
    ...['index.json', '_headers', 'index.html', '404.html'].map((name): [string, Prepare, string, RegExp] => {
      const why = new RegExp(`not an export and already has ${name}`)
      return [`a folder of another site with its own ${name}`, file(name), 'copy_refused', why]
    }),
  ])('%s is refused, and the target is not changed', async (_what, prepare, code, why) => {
    const workspace = await signedWorkspace(DAYS.slice(0, 2))
    const target = exportFolder(workspace)
    const exported = ((await prepare(workspace, target)) ?? workspace) as Exported
    const before = filesOfFolder(target.path)
    await expect(exportTo(exported, target.tree, WITH_PAGES)).rejects.toMatchObject({
      code,
      detail: expect.stringMatching(why) as unknown,
    })
    expect(filesOfFolder(target.path)).toEqual(before)
  })

  test('a file with other bytes is refused by name and is not overwritten', async () => {
    const workspace = await signedWorkspace(DAYS)
    const { path, tree } = exportFolder(workspace)
    const name = 'tlog/year/tile/0/000.p/2'
    await tree.put(name, Buffer.from('other bytes'))
    await expect(exportTo(workspace, tree)).rejects.toMatchObject({
      code: 'storage_damaged',
      detail: expect.stringMatching(new RegExp(`^${name} in the target differs`)) as unknown,
    })
    expect(readText(path, name)).toBe('other bytes')
    expect(Object.keys(filesOfFolder(path))).not.toContain(CHECKPOINT)
  })
})
