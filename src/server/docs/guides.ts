import { readFileSync } from 'node:fs'
import type { Html } from '../page/html.ts'
import { filePathOf, guideFiles, linkedPath } from './guide-files.ts'
import { renderMarkdown } from './markdown.ts'
import type { MenuEntry } from './menu.ts'

/** A document as the server shows it. */
interface Guide extends MenuEntry {
  /** Rendered when it is first asked for, and kept. */
  content: () => Html
}

export interface Guides {
  /** Every document, by its name; read when they are first asked for. */
  all: () => readonly Guide[]
  /** Where documents are shown, whether they can be read or not. */
  paths: readonly string[]
}

/** The project's own documents. */
export function openGuides(): Guides {
  const files = guideFiles()
  const read = once(() =>
    files.map((file): Guide => {
      const text = readFileSync(filePathOf(file), 'utf8')
      const content = once(() => renderMarkdown(text, (link) => linkedPath(files, file, link)))
      return { path: file.path, title: titleOf(text), content }
    }),
  )
  return { paths: files.map(({ path }) => path), all: read }
}

/** The first heading, without its markup. */
function titleOf(text: string): string {
  const [, heading = ''] = /^# (.+)$/m.exec(text) ?? []
  return heading.replaceAll(/[`*]/g, '')
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | null = null
  return () => (made ??= { value: make() }).value
}
