import { flagPlaces, quoted } from './command-tree.ts'
import type { CommandNode, Values } from './command-tree.ts'

/**
 * What bash loads to complete the program's command lines; bash 3.2 and later.
 *
 * @param names under which the program is called
 */
export function bashCompletion(tree: readonly CommandNode[], names: readonly string[]): string {
  const places = flagPlaces(tree)
  return `# completion of ${names.join(' and ')} for bash
_dash() {
  local words=() last=-1 join='' path='' pending='' word current prefix i offers='' take='' IFS=$'\\n'
  # bash splits source:name at the :
  for ((i = 0; i <= COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if [[ -n $join || ( $word == : && $last -ge 0 ) ]]; then words[last]+=$word; else words[++last]=$word; fi
    if [[ $word == : ]]; then join=yes; else join=''; fi
  done
  current=\${words[last]}
  for ((i = 1; i < last; i++)); do
    word=\${words[i]}
    # bash splits --flag=value at the =
    if [[ $word == = ]]; then continue; fi
    if [[ -n $pending ]]; then pending=''; continue; fi
    case "$path $word" in
      ${places.map(([place]) => quoted(place)).join('|')}) pending=$word ;;
      ${paths(tree).map(quoted).join('|')}) path="$path $word" ;;
    esac
  done
  if [[ $current == = ]]; then current=''; fi
  if [[ -n $pending ]]; then
    case "$path $pending" in
${places.map(([place, values]) => `      ${quoted(place)}) ${offer(values)} ;;`).join('\n')}
    esac
  elif [[ $current == -* ]]; then
    case "$path" in
${tree.map(({ path, flags }) => `      ${quoted(path)}) ${words(flags.map(({ word }) => word))} ;;`).join('\n')}
    esac
  else
    case "$path" in
${tree.map((node) => `      ${quoted(node.path)}) ${argumentOf(node)} ;;`).join('\n')}
    esac
  fi
  case $take in
    files) COMPREPLY=($(compgen -f -- "$current")); compopt -o filenames 2>/dev/null ;;
    folders) COMPREPLY=($(compgen -d -- "$current")); compopt -o filenames 2>/dev/null ;;
    *) COMPREPLY=($(compgen -W "$offers" -- "$current")) ;;
  esac
  # What is before the last : stands there already, where bash splits at it.
  if [[ $current == *:* && $COMP_WORDBREAKS == *:* ]]; then
    prefix=\${current%"\${current##*:}"}
    for ((i = 0; i < \${#COMPREPLY[@]}; i++)); do COMPREPLY[i]=\${COMPREPLY[i]#"$prefix"}; done
  fi
}
complete -F _dash ${names.join(' ')}
`
}

const paths = (tree: readonly CommandNode[]): string[] => tree.map(({ path }) => path).filter(Boolean)

function argumentOf({ commands, argument }: CommandNode): string {
  if (commands.length > 0) return words(commands.map(({ word }) => word))
  return argument === null ? ':' : offer(argument)
}

function offer(values: Values): string {
  if (values.kind === 'words') return words(values.words)
  return values.kind === 'anything' ? ':' : `take=${values.kind}`
}

const words = (offered: readonly string[]): string => `offers=${quoted(offered.join('\n'))}`
