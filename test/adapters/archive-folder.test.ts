import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { archiveFolder } from '../../src/adapters/input.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

async function folderWith(files: Record<string, string>): Promise<string> {
  const folder = await temporaryFolder()
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return folder
}

function refusal(reason: string | RegExp) {
  return { code: 'input_unreadable', detail: expect.stringMatching(reason) }
}

test('reads the bytes of a file as they are, through a link that stays in the folder too', async () => {
  const folder = await folderWith({ a: '\ufeff{"x": 1.0}\r\n' })
  symlinkSync('a', join(folder, 'link'))
  const archive = archiveFolder(folder)
  for (const file of ['a', './a', 'link']) {
    expect(Buffer.from(await archive.read(file, 15)).toString('hex')).toBe(
      Buffer.from('\ufeff{"x": 1.0}\r\n').toString('hex'),
    )
  }
})

test('reads an archive that lies behind a link itself', async () => {
  const folder = await folderWith({ a: 'x' })
  const link = join(await temporaryFolder(), 'link')
  symlinkSync(folder, link)
  expect(await archiveFolder(link).read('a', 1)).toHaveLength(1)
})

test('refuses what is missing, is no regular file, or has another size, without waiting', async () => {
  const folder = await folderWith({ a: 'x' })
  mkdirSync(join(folder, 'folder'))
  execFileSync('mkfifo', [join(folder, 'pipe')])
  const archive = archiveFolder(folder)
  await expect(archive.read('b', 1)).rejects.toMatchObject(refusal('"b": there is no such file'))
  await expect(archive.read('a/b', 1)).rejects.toMatchObject(refusal('there is no such file'))
  await expect(archive.read('folder', 1)).rejects.toMatchObject(refusal('not a regular file'))
  await expect(archive.read('pipe', 0)).rejects.toMatchObject(refusal('not a regular file'))
  await expect(archive.read('a', 2)).rejects.toMatchObject(refusal('has 1 bytes instead of 2'))
  await expect(archive.read('.', 1)).rejects.toMatchObject(refusal('outside the folder'))
})

test('refuses a link that leads out of the folder, even into one whose name begins alike', async () => {
  const outside = await folderWith({ secret: 'x' })
  const folder = join(outside, 'in')
  mkdirSync(folder)
  mkdirSync(`${folder}side`)
  writeFileSync(join(`${folder}side`, 'x'), 'x')
  symlinkSync('../secret', join(folder, 'file'))
  symlinkSync('..', join(folder, 'up'))
  symlinkSync('../inside', join(folder, 'alike'))
  const archive = archiveFolder(folder)
  for (const file of ['file', 'up/secret', 'alike/x']) {
    await expect(archive.read(file, 1)).rejects.toMatchObject(refusal('outside the folder'))
  }
})
