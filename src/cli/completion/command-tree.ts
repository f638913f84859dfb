import type { Command } from 'commander'

/** What may stand in a place of the command line. */
export type Values = { kind: 'words'; words: readonly string[] } | { kind: 'files' | 'folders' | 'anything' }

/** A word a shell may offer, and what it is for. */
export interface Offer {
  word: string
  meaning: string
}

/** A command as the program describes it. */
export interface CommandNode {
  /** The words that lead to it, each after a space: ` import signals`; empty for the program itself. */
  path: string
  commands: readonly Offer[]
  flags: readonly Offer[]
  /** What follows a flag that takes a value, by the flag. */
  flagValues: ReadonlyMap<string, Values>
  /** What may stand as its argument; null when it takes none. */
  argument: Values | null
}

/** Every command, from the program's own description. */
export function commandTree(command: Command, path = ''): CommandNode[] {
  const help = command.createHelp()
  const commands = help.visibleCommands(command)
  const options = help.visibleOptions(command)
  const [argument] = command.registeredArguments
  const node: CommandNode = {
    path,
    commands: commands.map((each) => ({ word: each.name(), meaning: help.subcommandDescription(each) })),
    flags: options.flatMap(({ long, description }) => (long ? [{ word: long, meaning: description }] : [])),
    flagValues: new Map(
      options.flatMap(({ long, flags, required, optional, argChoices }) =>
        long && (required || optional) ? [[long, valuesOf(flags, argChoices)] as const] : [],
      ),
    ),
    argument: argument ? valuesOf(argument.name(), argument.argChoices) : null,
  }
  // The implicit `help` is described by itself, and takes the name of any command.
  const own = command.commands.flatMap((each) => commandTree(each, `${path} ${each.name()}`))
  return [node, ...own]
}

/** @param name of the value, as the help shows it: `<file>`, `<dir>` */
function valuesOf(name: string, choices: readonly string[] | undefined): Values {
  if (choices) return { kind: 'words', words: choices }
  if (/\bfiles?\b/.test(name)) return { kind: 'files' }
  return { kind: /\bdir\b/.test(name) ? 'folders' : 'anything' }
}

/** The places of a tree that take a value of a kind, as `<path> <flag>`, by what they take. */
export function flagPlaces(tree: readonly CommandNode[]): [place: string, values: Values][] {
  return tree.flatMap(({ path, flagValues }) =>
    [...flagValues].map(([flag, values]): [string, Values] => [`${path} ${flag}`, values]),
  )
}

/** A word that every shell takes for itself. */
export function quoted(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`
}
