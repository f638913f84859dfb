import { readFileSync } from 'node:fs'
import type { Html } from '../page/html.ts'
import { filePathOf, guideFiles, linkedPath } from './guide-files.ts'
import type { GuideFile } from './guide-files.ts'
import { renderMarkdown } from './markdown.ts'
import type { MenuEntry } from './menu.ts'

/** A document as the server shows it. */
export interface Guide extends MenuEntry {
  content: Html
}

export interface Guides {
  /** Every document, first the ones to begin with. */
  all: () => readonly Guide[]
  /** Where documents are shown, whether they can be read or not. */
  paths: readonly string[]
}

/** Documents that are about the project, not about using it. */
const ABOUT =
  /^\/docs\/(?:decisions(?:\/|$)|architecture|contributing|changelog|benchmarks|evidence|demo-sources)/

/** The project's own documents, rendered when the first of them is asked for. */
export function openGuides(): Guides {
  const files = guideFiles()
  let kept: readonly Guide[] | null = null
  return {
    paths: files.map(({ path }) => path),
    all: () => (kept ??= files.map((file) => render(file, files)).sort(compareTitles)),
  }
}

/** True for a document that whoever uses the product may want to read. */
export function isForUsers({ path }: MenuEntry): boolean {
  return !ABOUT.test(path)
}

function render(file: GuideFile, files: readonly GuideFile[]): Guide {
  const text = readFileSync(filePathOf(file), 'utf8')
  const { title, content } = renderMarkdown(text, (link) => linkedPath(files, file, link))
  return { path: file.path, title, content }
}

function compareTitles(a: Guide, b: Guide): number {
  return a.title.localeCompare(b.title, 'en')
}
