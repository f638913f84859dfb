import type { SimpleCommandNode, TransformPlugin, WordNode } from 'just-bash'

/** Options with a value, of the tools whose options the sandbox does not read when several share a word. */
const WITH_VALUE: ReadonlyMap<string, string> = new Map([
  ['awk', 'Fv'],
  ['cut', 'bcdf'],
  ['grep', 'ABCem'],
  ['head', 'cn'],
  ['sort', 'kot'],
  ['tail', 'cn'],
  ['uniq', 'fsw'],
  ['xargs', 'nP'],
])

/**
 * Gives the sandbox in several words what it does not read in one: `sort -nrk2` becomes `sort -nr -k 2`. To a real tool
 * both are the same, so that a command is judged by what it does and not by how it is spelled.
 */
export const oneOptionAWord: TransformPlugin = {
  name: 'one-option-a-word',
  transform({ ast }) {
    respell(ast)
    return { ast }
  },
}

/** In place: the tree belongs to one run of one command. */
function respell(node: unknown): void {
  if (typeof node !== 'object' || node === null) return
  if (isSimpleCommand(node) && node.name !== null) node.args = respelled(node.name, node.args)
  Object.values(node).forEach(respell)
}

/**
 * The arguments of a command. What `xargs` runs is a command of its own; what `find -exec` runs is left as it is, because
 * a `;` that stands alone would end it.
 */
function respelled(name: WordNode, args: readonly WordNode[]): WordNode[] {
  const tool = textOf(name)
  const inner = innerCommand(tool, args)
  const own = separated(args.slice(0, inner), WITH_VALUE.get(tool) ?? '')
  const [command, ...rest] = args.slice(inner)
  return command === undefined ? own : [...own, command, ...respelled(command, rest)]
}

/** Where the command within the arguments begins: behind the last of them when there is none. */
function innerCommand(tool: string, args: readonly WordNode[]): number {
  if (tool !== 'xargs') return args.length
  const begins = args.findIndex(
    (word, index) => !isOption(word) && !/^-\w*[nPIdLsE]$/.test(textOf(args[index - 1])),
  )
  return begins === -1 ? args.length : begins
}

function separated(args: readonly WordNode[], letters: string): WordNode[] {
  const end = args.findIndex((word) => textOf(word) === '--')
  const options = end === -1 ? args : args.slice(0, end)
  const words = options.flatMap((word) => (letters === '' ? [word] : separatedWord(word, letters)))
  return [...words, ...args.slice(options.length)]
}

/** `-nrk2` with the letter `k`: `-nr`, `-k`, `2`. A value may go on with quoted text. */
function separatedWord(word: WordNode, letters: string): WordNode[] {
  const [first, ...others] = word.parts
  const option = new RegExp(`^-([A-Za-z0]*?)([${letters}])(.*)$`, 's').exec(
    first?.type === 'Literal' ? first.value : '',
  )
  if (option === null) return [word]
  const [, flags = '', letter = '', value = ''] = option
  const parts = value === '' ? others : [{ type: 'Literal' as const, value }, ...others]
  return [
    ...(flags === '' ? [] : [literal(`-${flags}`)]),
    literal(`-${letter}`),
    ...(parts.length === 0 ? [] : [{ ...word, parts }]),
  ]
}

function literal(value: string): WordNode {
  return { type: 'Word', parts: [{ type: 'Literal', value }] }
}

/** The text of a word without anything to expand or unquote, else nothing. */
function textOf(word: WordNode | undefined): string {
  const [part, ...others] = word?.parts ?? []
  return part?.type === 'Literal' && others.length === 0 ? part.value : ''
}

function isOption({ parts: [first] }: WordNode): boolean {
  return first?.type === 'Literal' && first.value.startsWith('-')
}

function isSimpleCommand(node: object): node is SimpleCommandNode {
  return 'type' in node && node.type === 'SimpleCommand'
}
