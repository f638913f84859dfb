import { isDecision, isForUsers } from './guides.ts'
import type { Guide } from './guides.ts'
import type { PublishedDocument } from './reference.ts'

/**
 * The documentation as a list that language models read (llmstxt.org): every interface with its OpenAPI document, every
 * guide as Markdown, what is about the project itself as optional.
 *
 * @param guides every guide, the front door first
 * @param base what addresses begin with, without a slash at its end
 */
export function llmsText(
  documents: readonly PublishedDocument[],
  guides: readonly Guide[],
  base: string,
): string {
  const [front] = guides
  const guideLine = ({ title, path, summary }: Guide): string =>
    `- [${title}](${base}${path}.md)${summary === '' ? '' : `: ${summary}`}`
  const interfaces = documents.map(
    ({ title, path, summary }) => `- [${title}](${base}${path}/openapi.json): OpenAPI 3.1. ${summary}`,
  )
  const sections = [
    `# ${front?.title ?? 'dash'}`,
    `> ${front?.summary ?? ''}`,
    section('Interfaces', interfaces),
    section('Guides', guides.filter(isForUsers).map(guideLine)),
    section('Optional', guides.filter((guide) => !isForUsers(guide) && !isDecision(guide)).map(guideLine)),
  ]
  return `${sections.join('\n\n')}\n`
}

function section(title: string, lines: readonly string[]): string {
  return [`## ${title}`, '', ...lines].join('\n')
}
