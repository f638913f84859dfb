import type { TransformPlugin, WordNode } from 'just-bash'

/** A loop over `"$@"` that leaves it out: the sandbox would split the arguments at their spaces. */
export const loopsOverArguments: TransformPlugin = {
  name: 'loops-over-arguments',
  transform({ ast }) {
    respell(ast)
    return { ast }
  },
}

const ARGUMENTS: WordNode = {
  type: 'Word',
  parts: [{ type: 'DoubleQuoted', parts: [{ type: 'ParameterExpansion', parameter: '@', operation: null }] }],
}

/** In place: the tree belongs to one run of one command. */
function respell(node: unknown): void {
  if (typeof node !== 'object' || node === null) return
  if ('type' in node && node.type === 'For' && 'words' in node) node.words ??= [ARGUMENTS]
  Object.values(node).forEach(respell)
}
