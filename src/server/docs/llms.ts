import type { Guide } from './guides.ts'
import { groupsOf } from './menu-groups.ts'
import type { PublishedDocument } from './reference.ts'

/** What a reader with little room may leave out (llmstxt.org). */
const OPTIONAL = 'The project'

/**
 * The documentation as a list that language models read (llmstxt.org): every interface with its OpenAPI document, every
 * guide as Markdown, in the groups of the menu; what is about the project itself is optional.
 *
 * @param base what addresses begin with, without a slash at its end
 */
export function llmsText(
  documents: readonly PublishedDocument[],
  guides: readonly Guide[],
  base: string,
): string {
  const guideLine = ({ title, path, summary }: Guide): string =>
    `- [${title}](${base}${path}.md)${summary === '' ? '' : `: ${summary}`}`
  const interfaces = documents.map(
    ({ title, path, summary }) => `- [${title}](${base}${path}/openapi.json): OpenAPI 3.1. ${summary}`,
  )
  const groups = groupsOf(guides)
  const front = groups[0]?.entries[0]
  const sections = groups.map(({ title, entries }) =>
    section(title === OPTIONAL ? 'Optional' : title, entries.map(guideLine)),
  )
  const head = [`# ${front?.title ?? 'dash'}`, `> ${front?.summary ?? ''}`, section('Interfaces', interfaces)]
  return `${[...head, ...sections].join('\n\n')}\n`
}

function section(title: string, lines: readonly string[]): string {
  return [`## ${title}`, '', ...lines].join('\n')
}
