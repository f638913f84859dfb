import { flagPlaces } from './command-tree.ts'
import type { CommandNode, Offer, Values } from './command-tree.ts'

/**
 * What fish loads to complete the program's command lines.
 *
 * @param names under which the program is called
 */
export function fishCompletion(tree: readonly CommandNode[], names: readonly string[]): string {
  const places = flagPlaces(tree)
  const paths = tree.map(({ path }) => path).filter(Boolean)
  return `# completion of ${names.join(' and ')} for fish
function __dash_offers
    set -l place ''
    set -l pending ''
    set -l prefix ''
    set -l current (commandline -ct)
    for word in (commandline -opc)[2..-1]
        if test -n "$pending"
            set pending ''
            continue
        end
        switch "$place $word"
            case ${places.map(([place]) => quoted(place)).join(' ')}
                set pending $word
            case ${paths.map(quoted).join(' ')}
                set place "$place $word"
        end
    end
    if test -z "$pending"; and string match -qr '^--[^=]+=' -- $current
        set pending (string replace -r '=.*' '' -- $current)
        set prefix "$pending="
        set current (string replace -r '^[^=]*=' '' -- $current)
    end
    if test -n "$pending"
        switch "$place $pending"
${cases(places.map(([place, values]) => [place, offer(values)]))}
        end
    else if string match -q -- '-*' "$current"
        switch "$place"
${cases(tree.map(({ path, flags }) => [path, described(flags)]))}
        end
    else
        switch "$place"
${cases(tree.map((node) => [node.path, argumentOf(node)]))}
        end
    end
end
${names.map((name) => `complete -c ${name} -f -a '(__dash_offers)'`).join('\n')}
`
}

function cases(each: readonly [place: string, body: string][]): string {
  return each.map(([place, body]) => `            case ${quoted(place)}\n                ${body}`).join('\n')
}

function argumentOf({ commands, argument }: CommandNode): string {
  if (commands.length > 0) return described(commands)
  return argument === null ? 'true' : offer(argument)
}

function offer(values: Values): string {
  if (values.kind === 'words')
    return `printf '%s\\n' "$prefix"${values.words.length > 1 ? `{${values.words.map(quoted).join(',')}}` : quoted(values.words[0] ?? '')}`
  if (values.kind === 'anything') return 'true'
  return values.kind === 'files'
    ? '__fish_complete_path "$current" | string replace -r "^" "$prefix"'
    : '__fish_complete_directories "$current" | string replace -r "^" "$prefix"'
}

const described = (offers: readonly Offer[]): string =>
  `printf '%s\\t%s\\n' ${offers.flatMap(({ word, meaning }) => [quoted(word), quoted(meaning)]).join(' ')}`

/** Between single quotes fish knows two escapes. */
function quoted(word: string): string {
  return `'${word.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
