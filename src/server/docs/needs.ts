/**
 * What an example of the documents may need that not every reader has (CONTRIBUTING.md, "Examples in the documents"), by
 * the mark in its fence, and how it is said beside the example.
 */
export const NEEDS: Readonly<Record<string, string>> = {
  internet: 'the Internet',
  account: 'an account at a provider',
  root: 'root',
  docker: 'Docker',
  terminal: 'a person at a terminal',
  machines: 'other machines',
  clone: 'a clone of the project',
  program: 'the program it names',
}

/** Programs that not every machine has. */
export const TOOLS: readonly string[] = ['jq', 'sqlite3', 'openssl', 'promtool']

/** What the fence of a block says that it needs, for a reader; empty when it needs nothing. */
export function needsText(info: string): string {
  const [, needs = ''] = /(?:^| )needs=(\S+)/.exec(info) ?? []
  return needs
    .split(',')
    .filter((need) => need !== '')
    .map((need) => NEEDS[need] ?? need)
    .join(', ')
}
