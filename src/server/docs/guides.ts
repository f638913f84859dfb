import { readFileSync } from 'node:fs'
import type { Html } from '../page/html.ts'
import { filePathOf, guideFiles, linkedPath } from './guide-files.ts'
import { renderMarkdown } from './markdown.ts'
import type { MenuEntry } from './menu.ts'

/** A document as the server shows it. */
export interface Guide extends MenuEntry {
  /** What it is about: the first sentence under its heading. */
  summary: string
  /** Rendered when it is first asked for, and kept. */
  content: () => Html
  /** As it was written, with links that lead to the Markdown of other documents on this server. */
  markdown: () => string
}

export interface Guides {
  /** Every document, by its name; read when they are first asked for. */
  all: () => readonly Guide[]
  /** The document shown at one of `paths`. */
  at: (path: string) => Guide
  /** Where documents are shown, whether they can be read or not. */
  paths: readonly string[]
}

/** The project's own documents. */
export function openGuides(): Guides {
  const files = guideFiles()
  const read = once(() =>
    files.map((file): Guide => {
      const text = readFileSync(filePathOf(file), 'utf8')
      const linkTo = (link: string): string | null => linkedPath(files, file, link)
      return {
        path: file.path,
        title: titleOf(text),
        summary: summaryOf(text),
        content: once(() => renderMarkdown(text, linkTo)),
        markdown: once(() => withLinksToMarkdown(text, linkTo)),
      }
    }),
  )
  return {
    paths: files.map(({ path }) => path),
    all: read,
    at(path) {
      const guide = read().find((each) => each.path === path)
      if (!guide) throw new Error(`there is no document at ${path}`)
      return guide
    },
  }
}

/** The first heading, without its markup. */
function titleOf(text: string): string {
  const [, heading = ''] = /^# (.+)$/m.exec(text) ?? []
  return heading.replaceAll(/[`*]/g, '')
}

/** The first sentence of the first paragraph; empty for a document that has none. */
function summaryOf(text: string): string {
  const paragraphs = text.split(/\n\s*\n/).map((part) => part.trim())
  const first = paragraphs.find((part) => /^(?!```)[\w`*[]/.test(part)) ?? ''
  const plain = first
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll('**', '')
  return /^.*?\.(?= |$)/.exec(plain)?.[0] ?? plain.replace(/:$/, '.')
}

function withLinksToMarkdown(text: string, linkTo: (link: string) => string | null): string {
  return text.replaceAll(/\]\(([^()\s]+)\)/g, (whole, link: string) => {
    const [path, ...fragment] = (/^https?:/.test(link) ? null : linkTo(link))?.split('#') ?? []
    return path === undefined ? whole : `](${[`${path}.md`, ...fragment].join('#')})`
  })
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | null = null
  return () => (made ??= { value: make() }).value
}
