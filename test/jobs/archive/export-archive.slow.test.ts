import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
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
import { FaultPlan, InjectedFault } from '../faults.ts'
import type { FaultKind } from '../faults.ts'
import { importPortsOf, SAMPLE_ARCHIVE } from '../../support/legacy-archive.ts'
import { signedLogIn } from '../../support/signed-log.ts'
import { filesOfFolder } from '../../support/temporary-folder.ts'
import { AS_OF, openWorkspace, publishedWorkspace, publishPortsOf } from '../../support/workspace.ts'

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

/** Returns a workspace whose log has only some of its files, like a restored older copy. */
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
    expect(JSON.parse(readText(path, 'index.json'))).toMatchObject({ head: { seq: 4 } })
    const { publications } = JSON.parse(readText(path, 'index.json')) as { publications: unknown[] }
    expect(publications).toHaveLength(3)
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

  test('a log without a policy is refused with what to do', async () => {
    const workspace = await signedWorkspace([AS_OF])
    const unnamed = (await workspace.objects.logFiles.list()).filter(({ kind }) => kind !== 'policy')
    const { tree } = exportFolder(workspace)
    await expect(exportTo(withLogFiles(workspace, unnamed), tree)).rejects.toMatchObject({
      code: 'archive_damaged',
      detail: expect.stringContaining('no policy is stored; run dash checkpoint') as unknown,
    })
  })

  test.each(['tlog/year/policy', 'index.json', CHECKPOINT])(
    'an export that is slow before it replaces %s does not take a newer export back',
    async (slow) => {
      const workspace = await signedWorkspace(DAYS.slice(0, 2))
      const { path, tree } = exportFolder(workspace)
      // Only the first export writes the policy.
      if (slow !== 'tlog/year/policy') await exportTo(workspace, tree)
      await publishSigned(workspace, [NEXT_DAY])
      const older = await workspace.objects.logFiles.list()
      await publishSigned(workspace, [addDays(NEXT_DAY, 1)])
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
      const smaller = older.filter((file) => file.kind === 'policy' || file.size <= 5)
      await expect(exportTo(withLogFiles(workspace, smaller), paused)).rejects.toMatchObject({
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
      async put(name, bytes) {
        written.push(name)
        return tree.put(name, bytes)
      },
      async replace(name, before, bytes) {
        written.push(name)
        return tree.replace(name, before, bytes)
      },
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
    ['lost', 'a new export'],
    ['lost', 'an older export'],
    ['done-but-reported-lost', 'a new export'],
    ['done-but-reported-lost', 'an older export'],
  ] satisfies [FaultKind, string][])(
    'writes that are %s at any effect of %s leave no checkpoint or page without its files, and the next export continues',
    async (kind, base) => {
      const workspace = await signedWorkspace(DAYS.slice(0, 2))
      const listed = await workspace.objects.logFiles.list()
      const older = withLogFiles(
        workspace,
        listed.filter((file) => file.kind === 'policy' || file.size < 2),
      )
      const opened = async (name: string): Promise<ReturnType<typeof exportFolder>> => {
        const folder = exportFolder(workspace, name)
        if (base === 'an older export') await exportTo(older, folder.tree, WITH_PAGES)
        return folder
      }
      const complete = await opened('complete')
      const counting = new FaultPlan(null)
      await exportTo(workspace, counting.wrap('tree', complete.tree), WITH_PAGES)
      const expected = filesOfFolder(complete.path)
      for (const effect of counting.effects.keys()) {
        const { path, tree } = await opened(`cut-${effect}`)
        const cut = new FaultPlan({ effect, kind }).wrap('tree', tree)
        await expect(exportTo(workspace, cut, WITH_PAGES)).rejects.toBeInstanceOf(InjectedFault)
        const files = filesOfFolder(path)
        if (files[CHECKPOINT] === expected[CHECKPOINT]) expect(files).toEqual(expected)
        // Nothing leads to the pages of a new export before its list of days.
        if ('days.html' in files) expect(brokenLinks(files, 'year/')).toEqual([])
        await exportTo(workspace, tree, WITH_PAGES)
        expect(filesOfFolder(path)).toEqual(expected)
        rmSync(path, { recursive: true, force: true })
      }
    },
  )
})

describe('the refusal of an export', () => {
  const refused = (code: string, why: RegExp) => ({ code, detail: expect.stringMatching(why) as unknown })

  test('an archive without a signed checkpoint is refused as a lack of configuration', async () => {
    const workspace = await publishedWorkspace([AS_OF])
    const { path, tree } = exportFolder(workspace)
    await expect(exportTo(workspace, tree)).rejects.toMatchObject(
      refused('configuration', /dash log-key new.*dash checkpoint/),
    )
    expect(filesOfFolder(path)).toEqual({})
  })

  test('a file with other bytes is refused by name and is not overwritten', async () => {
    const workspace = await signedWorkspace(DAYS)
    const { path, tree } = exportFolder(workspace)
    const name = 'tlog/year/tile/0/000.p/2'
    await tree.put(name, Buffer.from('other bytes'))
    await expect(exportTo(workspace, tree)).rejects.toMatchObject(
      refused('storage_damaged', new RegExp(`^${name} in the target differs`)),
    )
    expect(readText(path, name)).toBe('other bytes')
    expect(Object.keys(filesOfFolder(path))).not.toContain(CHECKPOINT)
  })

  test('a damaged object of the archive is refused before it is written', async () => {
    const workspace = await signedWorkspace([AS_OF])
    const { path, tree } = exportFolder(workspace)
    const { rows } = await workspace.ledger.read()
    const sha256 = rows[0]?.sha256 ?? ''
    const stored = join(workspace.objectsPath, 'sha256', sha256.slice(0, 2), sha256)
    rmSync(stored)
    writeFileSync(stored, '{}')
    await expect(exportTo(workspace, tree)).rejects.toMatchObject({ code: 'archive_damaged' })
    expect(filesOfFolder(path)).toEqual({})
  })

  test('a target with a larger checkpoint is refused and keeps its checkpoint', async () => {
    const workspace = await signedWorkspace(DAYS)
    const { path, tree } = exportFolder(workspace)
    await publishSigned(workspace, [NEXT_DAY])
    await exportTo(workspace, tree)
    const files = await workspace.objects.logFiles.list()
    const older = files.filter((file) => file.kind === 'policy' || file.size < 5)
    await expect(exportTo(withLogFiles(workspace, older), tree)).rejects.toMatchObject(
      refused('storage_damaged', /has 5 entries, the newest .* only 4/),
    )
    expect(sizeIn(path)).toBe(5)
  })

  test('a target with a checkpoint of another history of the same log is refused', async () => {
    const [workspace, fork] = [await signedWorkspace(DAYS), await signedWorkspace(DAYS.slice(1))]
    const { path, tree } = exportFolder(workspace)
    await exportTo(fork, tree)
    const before = filesOfFolder(path)
    await expect(exportTo(workspace, tree)).rejects.toMatchObject(
      refused('storage_damaged', /belongs to another history/),
    )
    expect(filesOfFolder(path)).toEqual(before)
  })

  test('a target that holds the export of another log is refused with both origins', async () => {
    const workspace = await signedWorkspace([AS_OF])
    const other = await publishedWorkspace([AS_OF])
    const log = signedLogIn(other.folder, 'other.example/tlog/year')
    await publishSigned({ ...other, log }, [NEXT_DAY])
    const { path, tree } = exportFolder(workspace)
    await exportTo(other, tree)
    const before = filesOfFolder(path)
    await expect(exportTo(workspace, tree)).rejects.toMatchObject(
      refused('copy_refused', /other\.example\/tlog\/year.*dash\.example\/tlog\/year/),
    )
    expect(filesOfFolder(path)).toEqual(before)
  })

  test('a target with a checkpoint that cannot be read is refused', async () => {
    const workspace = await signedWorkspace([AS_OF])
    const { tree } = exportFolder(workspace)
    await tree.put(CHECKPOINT, Buffer.from('damaged'))
    await expect(exportTo(workspace, tree)).rejects.toMatchObject(
      refused('storage_damaged', /is not a signed checkpoint/),
    )
  })

  test.each(['index.json', '_headers', 'index.html'])(
    'a folder of another site with its own %s is refused and is not changed',
    async (name) => {
      const workspace = await signedWorkspace([AS_OF])
      const { path, tree } = exportFolder(workspace)
      writeFileSync(join(path, name), 'mine')
      await expect(exportTo(workspace, tree, WITH_PAGES)).rejects.toMatchObject(
        refused('copy_refused', new RegExp(`not an export and already has ${name}`)),
      )
      expect(Object.keys(filesOfFolder(path))).toEqual([name])
    },
  )
})
