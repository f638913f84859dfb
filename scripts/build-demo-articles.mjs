/**
 * Rebuilds the article texts of the demo, `assets/demo/articles.ndjson.gz`, and `assets/demo/article-licences.txt`: the
 * READMEs of repositories that items of the sample link to, as their npm packages contain them.
 *
 *     node scripts/build-demo-articles.mjs
 *
 * It downloads the packages below from the configured npm registry and checks their integrity. The same packages give the
 * same rows. `assets/demo/SOURCES.md` lists them with their licences.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { DEMO_ARTICLES } from './demo-articles.mjs'

/** Longest text, in UTF-16 code units; it ends with a whole paragraph. */
const TEXT_MAX_LENGTH = 12_000
const FETCHED_AT = '2021-11-07T12:00:00.000Z'

async function main() {
  const folder = mkdtempSync(join(tmpdir(), 'demo-articles-'))
  try {
    const read = []
    for (const article of DEMO_ARTICLES) read.push(await readPackage(article, folder))
    const target = fileURLToPath(new URL('../assets/demo', import.meta.url))
    const rows = read.map(({ row }) => `${JSON.stringify(row)}\n`).join('')
    const bytes = gzipSync(rows, { level: 9 })
    bytes[9] = 255
    writeFileSync(join(target, 'articles.ndjson.gz'), bytes)
    writeFileSync(join(target, 'article-licences.txt'), licencesOf(read))
    console.table(
      read.map(({ row, package: name, licence }) => ({
        name,
        licence: licence.length,
        text: row.text.length,
      })),
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * @param {{ key: string, package: string }} article
 * @param {string} folder
 */
async function readPackage({ key, package: name }, folder) {
  const [{ filename, integrity }] = JSON.parse(
    execFileSync('npm', ['pack', name, '--json', '--pack-destination', folder], { encoding: 'utf8' }),
  )
  const file = join(folder, filename.replace('@', '').replace('/', '-'))
  const digest = createHash('sha512').update(readFileSync(file)).digest('base64')
  if (integrity !== `sha512-${digest}`)
    throw new Error(`${name}: expected ${integrity}, found sha512-${digest}`)
  const names = execFileSync('tar', ['tzf', file], { encoding: 'utf8', maxBuffer: 1e8 }).split('\n')
  /** @param {RegExp} pattern */
  const contentOf = (pattern) => {
    const found = names.find((each) => pattern.test(each))
    if (found === undefined) throw new Error(`${name} has no file that matches ${pattern}`)
    return execFileSync('tar', ['xzOf', file, found], { encoding: 'utf8' })
  }
  const at = name.lastIndexOf('@')
  const address = `https://www.npmjs.com/package/${name.slice(0, at)}/v/${name.slice(at + 1)}`
  return {
    package: name,
    licence: contentOf(/^[^/]+\/(licen[cs]e|copying)[^/]*$/i)
      .replaceAll('\r\n', '\n')
      .trim(),
    row: {
      key,
      text: readable(contentOf(/^[^/]+\/readme(\.md|\.markdown)?$/i)),
      fetchedAt: FETCHED_AT,
      provenance: `npm:readme ${address}`,
    },
  }
}

/**
 * Markdown without images, badges, link targets, HTML and marks of headings, code and emphasis, cut after the last paragraph that fits.
 *
 * @param {string} markdown
 */
function readable(markdown) {
  const text = markdown
    .replaceAll('\r\n', '\n')
    .replaceAll(/<!--[\s\S]*?-->/g, '')
    .replaceAll(/!\[[^\]]*\](\([^)]*\)|\[[^\]]*\])/g, '')
    .replaceAll(/\[([^[\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/^\[[^\]]+\]:.*$/gm, '')
    .replaceAll(/<\/?[a-z][^<>]*>/gi, '')
    .replaceAll(/^(?:#+[^\S\n]+|[^\S\n]*(?:```|~~~).*|[-=*_]{3,}[^\S\n]*$)/gm, '')
    .replaceAll(/\*\*|__|`/g, '')
    .replaceAll(/[^\S\n]+$/gm, '')
    .replaceAll(/\n{3,}/g, '\n\n')
    .trim()
  return text.length <= TEXT_MAX_LENGTH ? text : text.slice(0, text.lastIndexOf('\n\n', TEXT_MAX_LENGTH))
}

/**
 * Every licence text once, under the packages that it belongs to.
 *
 * @param {{ package: string, licence: string }[]} read
 */
function licencesOf(read) {
  /** @type {Map<string, string[]>} */
  const packages = new Map()
  for (const { package: name, licence } of read)
    packages.set(licence, [...(packages.get(licence) ?? []), name])
  return [...packages]
    .map(([licence, names]) => `${'='.repeat(80)}\n${names.join('\n')}\n${'='.repeat(80)}\n\n${licence}\n`)
    .join('\n')
}

await main()
