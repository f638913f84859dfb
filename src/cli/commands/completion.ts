import { Option } from 'commander'
import type { Command } from 'commander'
import type { BareContext } from '../context.ts'
import { EXIT } from '../exit-codes.ts'
import { shellQuoted } from '../terminal.ts'

/** Names of the program in the package. */
const NAMES = ['dash', 'dashctl']

/** Quotes a word for fish, whose single quotes know two escapes. */
const fishQuoted = (word: string): string => `'${word.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`

/**
 * Completion scripts by shell (docs/decisions/0068-shell-completion.md). All hold the same table, in lines of
 * `path|kind|word|description`: the path is the words that lead to a command, each after a space, and the flag
 * whose value is completed; the kind is `f` for flags, `v` for values of a flag, `a` for commands and arguments;
 * the word may be `@files`, `@folders`, or empty if nothing can be offered.
 */
const SHELLS: Readonly<Record<string, (table: readonly string[]) => string>> = {
  // bash 3.2 and later.
  bash: (table) => `# completion of ${NAMES.join(' and ')} for bash
_dash() {
  local table=${shellQuoted(`\n${table.join('\n')}`)}
  local words=() last=-1 join='' path='' pending='' kind=a offers='' word current prefix of i IFS=$'\\n'
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
    if [[ -n $pending ]]; then pending=''
    elif [[ $table == *$'\\n'"$path $word|v|"* ]]; then pending=" $word"
    elif [[ $table == *$'\\n'"$path $word|f|"* ]]; then path="$path $word"; fi
  done
  if [[ $current == = ]]; then current=''; fi
  if [[ -n $pending ]]; then kind=v; elif [[ $current == -* ]]; then kind=f; fi
  while IFS='|' read -r i of word prefix; do
    if [[ $i == "$path$pending" && $of == "$kind" ]]; then offers+=$word$'\\n'; fi
  done <<< "$table"
  case $offers in
    @files*) COMPREPLY=($(compgen -f -- "$current")); compopt -o filenames 2>/dev/null ;;
    @folders*) COMPREPLY=($(compgen -d -- "$current")); compopt -o filenames 2>/dev/null ;;
    *) COMPREPLY=($(compgen -W "$offers" -- "$current")) ;;
  esac
  # Before the last : is what stands there already, where bash splits at it.
  if [[ $current == *:* && $COMP_WORDBREAKS == *:* ]]; then
    prefix=\${current%"\${current##*:}"}
    for ((i = 0; i < \${#COMPREPLY[@]}; i++)); do COMPREPLY[i]=\${COMPREPLY[i]#"$prefix"}; done
  fi
}
complete -F _dash ${NAMES.join(' ')}`,

  // From a folder of fpath, or by source.
  zsh: (table) => `#compdef ${NAMES.join(' ')}
# completion of ${NAMES.join(' and ')} for zsh
_dash() {
  local table=${shellQuoted(`\n${table.join('\n')}`)}
  local current=\${words[CURRENT]} place='' pending='' kind=a word line i
  local -a parts offers
  for ((i = 2; i < CURRENT; i++)); do
    word=\${words[i]}
    if [[ -n $pending ]]; then pending=''
    elif [[ $table == *$'\\n'"$place $word|v|"* ]]; then pending=" $word"
    elif [[ $table == *$'\\n'"$place $word|f|"* ]]; then place="$place $word"; fi
  done
  if [[ -z $pending && $current == --*=* ]]; then
    pending=" \${current%%=*}"
    compset -P '*='
  fi
  if [[ -n $pending ]]; then kind=v; elif [[ $current == -* ]]; then kind=f; fi
  for line in \${(f)table}; do
    parts=("\${(@s:|:)line}")
    # A colon parts a word from its description.
    if [[ $parts[1] == "$place$pending" && $parts[2] == $kind ]]; then offers+=("\${parts[3]//:/\\\\:}:$parts[4]"); fi
  done
  case $offers[1] in
    (@files:) _files ;;
    (@folders:) _files -/ ;;
    (|:) ;;
    (*) _describe offer offers ;;
  esac
}
if [[ $funcstack[1] == _dash ]]; then _dash "$@"; else compdef _dash ${NAMES.join(' ')}; fi`,

  fish: (table) => `# completion of ${NAMES.join(' and ')} for fish
function __dash_offers
    set -l table ${table.map(fishQuoted).join(' \\\n        ')}
    set -l place ''
    set -l pending ''
    set -l prefix ''
    set -l kind a
    set -l current (commandline -ct)
    for word in (commandline -opc)[2..-1]
        if test -n "$pending"
            set pending ''
        else if string match -q -- "$place $word|v|*" $table
            set pending " $word"
        else if string match -q -- "$place $word|f|*" $table
            set place "$place $word"
        end
    end
    if test -z "$pending"; and string match -qr '^--[^=]+=' -- $current
        set prefix (string replace -r '=.*' '=' -- $current)
        set pending " "(string replace -r '=.*' '' -- $current)
        set current (string replace -r '^[^=]*=' '' -- $current)
    end
    if test -n "$pending"
        set kind v
    else if string match -q -- '-*' "$current"
        set kind f
    end
    for line in (string match -- "$place$pending|$kind|*" $table)
        set -l offer (string split -m 3 '|' -- $line)[3..4]
        switch "$offer[1]"
            case @files
                __fish_complete_path "$current" | string replace -r '^' "$prefix"
            case @folders
                __fish_complete_directories "$current" | string replace -r '^' "$prefix"
            case ''
                # Any value may follow.
            case '*'
                printf '%s%s\\t%s\\n' "$prefix" $offer
        end
    end
end
${NAMES.map((name) => `complete -c ${name} -f -a '(__dash_offers)'`).join('\n')}`,
}

/** `dash completion`: prints a shell completion script, generated from the program's own description. */
export async function completionCommand(
  { terminal }: BareContext,
  _flags: object,
  [shell = '']: readonly string[],
  program: Command,
): Promise<number> {
  const script = SHELLS[shell]?.(tableOf(program)) ?? ''
  terminal.result({ shell, script: `${script}\n` }, script)
  return EXIT.done
}

function tableOf(command: Command, path = ''): string[] {
  const help = command.createHelp()
  const commands = help.visibleCommands(command)
  // Global options complete after every command, although only the root help lists them.
  const options = [...command.options, new Option('-h, --help', 'print help')]
  const [argument] = command.registeredArguments
  return [
    ...options.map(({ long, description }) => `${path}|f|${long}|${description}`),
    ...options.flatMap(({ long, flags, required, optional, argChoices }) =>
      required || optional ? offers(flags, argChoices).map((word) => `${path} ${long}|v|${word}|`) : [],
    ),
    ...commands.map((each) => `${path}|a|${each.name()}|${help.subcommandDescription(each)}`),
    ...(argument ? offers(argument.name(), argument.argChoices).map((word) => `${path}|a|${word}|`) : []),
    // The implicit `help` is described by itself, and takes the name of any command.
    ...command.commands.flatMap((each) => tableOf(each, `${path} ${each.name()}`)),
  ]
}

/** @param name name of a value in the help: `<file>`, `<dir>` */
function offers(name: string, choices: readonly string[] | undefined): readonly string[] {
  if (choices) return choices
  if (/\bfiles?\b/.test(name)) return ['@files']
  return [/\bdir\b/.test(name) ? '@folders' : '']
}
