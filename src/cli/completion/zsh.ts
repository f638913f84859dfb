import { flagPlaces, quoted } from './command-tree.ts'
import type { CommandNode, Offer, Values } from './command-tree.ts'

/**
 * What zsh loads to complete the program's command lines, from a folder of `fpath` or by `source`.
 *
 * @param names under which the program is called
 */
export function zshCompletion(tree: readonly CommandNode[], names: readonly string[]): string {
  const places = flagPlaces(tree)
  const paths = tree.map(({ path }) => path).filter(Boolean)
  return `#compdef ${names.join(' ')}
# completion of ${names.join(' and ')} for zsh
_dash() {
  local current=\${words[CURRENT]} place='' pending='' word i
  local -a offers
  for ((i = 2; i < CURRENT; i++)); do
    word=\${words[i]}
    if [[ -n $pending ]]; then pending=''; continue; fi
    case "$place $word" in
      (${places.map(([place]) => quoted(place)).join('|')}) pending=$word ;;
      (${paths.map(quoted).join('|')}) place="$place $word" ;;
    esac
  done
  if [[ -z $pending && $current == --*=* ]]; then
    pending=\${current%%=*}
    compset -P '*='
  fi
  if [[ -n $pending ]]; then
    case "$place $pending" in
${places.map(([place, values]) => `      (${quoted(place)}) ${offer(values)} ;;`).join('\n')}
    esac
  elif [[ $current == -* ]]; then
    case "$place" in
${tree.map(({ path, flags }) => `      (${quoted(path)}) ${described('flag', flags)} ;;`).join('\n')}
    esac
  else
    case "$place" in
${tree.map((node) => `      (${quoted(node.path)}) ${argumentOf(node)} ;;`).join('\n')}
    esac
  fi
}
if [[ $funcstack[1] == _dash ]]; then _dash "$@"; else compdef _dash ${names.join(' ')}; fi
`
}

function argumentOf({ commands, argument }: CommandNode): string {
  if (commands.length > 0) return described('command', commands)
  return argument === null ? ':' : offer(argument)
}

function offer(values: Values): string {
  if (values.kind === 'words') return `compadd -- ${values.words.map(quoted).join(' ')}`
  if (values.kind === 'anything') return ':'
  return values.kind === 'files' ? '_files' : '_files -/'
}

/** A colon parts a word from its description. */
function described(what: string, offers: readonly Offer[]): string {
  const each = offers.map(({ word, meaning }) => quoted(`${word.replaceAll(':', '\\:')}:${meaning}`))
  return `offers=(${each.join(' ')}); _describe ${quoted(what)} offers`
}
