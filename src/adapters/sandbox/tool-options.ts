/** Option syntax of a tool. The sandbox's tools expect one option per word and know few long names. */
export interface OptionSyntax {
  /** Option letters that take a value. */
  valueLetters: string
  /** Option letter of each long name. A value that is itself a long name stays long and takes a value. */
  longNames: Readonly<Record<string, string>>
  /** True if the first operand ends the options, as for tools whose arguments hold a command. */
  untilOperand?: true
}

/** @param longNames `long=short` names; a name alone is a long name that stays */
function syntax(valueLetters: string, longNames: string): OptionSyntax {
  const names = longNames.split(' ').map((pair) => pair.split('='))
  return {
    valueLetters,
    longNames: Object.fromEntries(names.map(([name = '', short = `--${name}`]) => [name, short])),
  }
}

const LINE_COUNTS = syntax('cn', 'bytes=c lines=n quiet=q silent=q')

const GREP_NAMES = [
  'after-context=A basic-regexp=G before-context=B context=C count=c dereference-recursive=R exclude exclude-dir',
  'extended-regexp=E files-with-matches=l files-without-match=L fixed-strings=F ignore-case=i include',
  'invert-match=v line-number=n line-regexp=x max-count=m no-filename=h no-messages=s null=Z only-matching=o',
  'perl-regexp=P quiet=q recursive=r regexp=e silent=q text=a with-filename=H word-regexp=w',
].join(' ')

const SORT_NAMES =
  'field-separator=t ignore-case=f key=k numeric-sort=n output=o reverse=r stable=s unique=u zero-terminated=z'

const XARGS_NAMES = 'delimiter=d max-args=n max-lines=L max-procs=P no-run-if-empty=r null=0 replace=I'

export const OPTION_SYNTAX: ReadonlyMap<string, OptionSyntax> = new Map([
  ['awk', { ...syntax('Fv', 'field-separator=F assign=v'), untilOperand: true }],
  ['cut', syntax('bcdf', 'delimiter=d fields=f characters=c only-delimited=s')],
  ['grep', syntax('ABCDdefm', GREP_NAMES)],
  ['head', LINE_COUNTS],
  ['sort', syntax('koSTt', SORT_NAMES)],
  ['sed', syntax('ef', 'expression=e')],
  ['tail', LINE_COUNTS],
  ['uniq', syntax('fsw', 'skip-chars=s skip-fields=f')],
  ['xargs', { ...syntax('adEILnPs', XARGS_NAMES), untilOperand: true }],
])

/**
 * Differences between just-bash 3.4.2 and the GNU tools. A command that needs one of them is not graded
 * (docs/lite-suite.md). The tables come from running every option of the tools' `--help` in the sandbox. An option
 * outside the tables does not exist, so a command that uses it is graded.
 */

/**
 * Tools of a usual system that the sandbox does not have, or that are disabled because they bring a worker or a
 * parser.
 */
export const MISSING_TOOLS: readonly string[] = [
  'perl python python3 ruby node php lua gawk mawk nawk busybox ed ex vim bc dc numfmt factor shuf',
  'tsort yes csplit fmt pr ptx look hexdump xxd uname id nproc ps kill top df mount locate',
  'realpath mktemp install truncate dd mkfifo sync shred chown chgrp rename prename mmv rsync',
  'parallel sponge less more man iconv dos2unix zip unzip bzip2 xz zgrep git make sudo curl wget',
  'ssh nc ag ack fd bat datamash mlr csvcut yq xan sqlite3 nohup nice stdbuf setsid tput logger',
  'cksum b2sum sha512sum envsubst',
  'trap coproc ulimit umask jobs fg bg disown bind complete compgen caller times enable suspend fc hash',
].flatMap((names) => names.split(' '))

/** Options of the real tools that the sandbox rejects, by tool: letters first, then long names. */
const MISSING_OPTIONS: Readonly<Record<string, string>> = {
  grep: 'GzsVbHaIdDTZUemABC basic-regexp regexp no-ignore-case null-data no-messages max-count byte-offset line-buffered with-filename label binary-files text directories devices dereference-recursive include exclude exclude-from exclude-dir initial-tab null before-context after-context context group-separator no-group-separator color colour binary',
  sort: 'giRCmSTz general-numeric-sort ignore-nonprinting random-sort random-source sort batch-size check compress-program debug files0-from merge buffer-size temporary-directory parallel zero-terminated',
  uniq: 'Dfszw all-repeated skip-fields group skip-chars zero-terminated check-chars',
  wc: 'L files0-from max-line-length',
  head: 'z bytes lines zero-terminated',
  tail: 'fFsz bytes follow lines max-unchanged-stats pid retry sleep-interval zero-terminated',
  cut: 'bnzM bytes characters delimiter fields complement output-delimiter zero-terminated',
  tr: 't truncate-set1',
  sed: 'lsuz debug expression file follow-symlinks in-place line-length posix separate sandbox unbuffered null-data',
  xargs:
    'adEeIiLlnoPpsx arg-file delimiter eof replace max-lines max-args open-tty max-procs interactive process-slot-var max-chars show-limits exit',
  ls: 'bBcCDfgGHiIkLmnNopqQsTuUvwxXZ author escape block-size ignore-backups color dired file-type format full-time group-directories-first no-group si dereference-command-line hide hyperlink indicator-style inode ignore kibibytes dereference numeric-uid-gid literal hide-control-chars show-control-chars quote-name quoting-style size sort time time-style tabsize width context zero',
  du: '0BbDdHkLlmPStXx null all apparent-size block-size bytes total dereference-args files0-from human-readable inodes dereference count-links no-dereference separate-dirs si summarize threshold time time-style exclude-from exclude one-file-system',
  stat: 'Lft dereference file-system cached printf terse',
  mv: 'biStTuZ backup interactive strip-trailing-slashes suffix target-directory no-target-directory update context',
  cp: 'abdfiHlLPsStTuxZ archive attributes-only backup copy-contents force interactive link dereference no-dereference no-preserve parents reflink remove-destination sparse strip-trailing-slashes symbolic-link suffix target-directory no-target-directory update one-file-system context',
  mkdir: 'mZ mode context',
  paste: 'z zero-terminated',
  comm: 'z check-order nocheck-order output-delimiter total zero-terminated',
  tee: 'ip ignore-interrupts output-error',
  nl: 'dfhlp body-numbering section-delimiter footer-numbering header-numbering line-increment join-blank-lines number-format no-renumber number-separator starting-line-number number-width',
  touch: 'fh no-dereference reference time',
  rm: 'iId interactive one-file-system no-preserve-root preserve-root dir',
  join: 'jz check-order nocheck-order header zero-terminated',
  find: 'PLHD lname Olevel fstype daystart follow regextype warn files0-from ignore_readdir_race mount noignore_readdir_race noleaf xdev amin anewer atime cmin cnewer ctime executable false gid group ilname inum iwholename links mmin nogroup nouser readable samefile true uid used user wholename writable xtype context execdir fls fprint fprint0 fprintf ls ok okdir quit nowarn',
}

/** Messages of the sandbox about unsupported features other than tools and options. */
const UNSUPPORTED_MESSAGES = [
  /^.*\b(?:not supported|not implemented|not allowed in sandboxed|not available in)\b.*$/im,
  /^usage: paste .*$/m,
  /^(?:head|tail): invalid number of (?:lines|bytes)$/m,
  /^awk: .*out of bounds.*$/m,
  /^awk: Unexpected token: PIPE.*$/m,
  /^date: invalid date .*$/m,
  // Every real tool accepts `--`.
  /^\w+: unrecognized option '--'$/m,
]

/** Forms that the sandbox runs without an error, with another result than GNU. */
const DIFFERENT_RESULTS: readonly { form: RegExp; why: string }[] = [
  { form: /\bfind\b[^|;]*\s-size\s+[+-]?\d+[^c\d]/, why: 'find -size uses another unit' },
  { form: /\bawk\b.*\blength\b(?!\s*\()/, why: 'awk length needs parentheses' },
  { form: /(?:^|[|;&(]\s*)(?:od|split|diff)\s/, why: 'od, split and diff use another output format' },
]

/**
 * Returns the part of a command that the sandbox does not support, in one line; null if there is none.
 *
 * @param stderr complete error output of the command
 */
export function findUnsupported(command: string, stderr: string): string | null {
  const optionError =
    /^(\w+): (?:invalid option -- '([^']+)'|unrecognized option '--([^'=]+)[^']*'|unknown predicate '-([^']+)')$/m.exec(
      stderr,
    )
  const [line = '', tool = '', letter, ...names] = optionError ?? []
  const [letters = '', ...longNames] = (MISSING_OPTIONS[tool] ?? '').split(' ')
  const name = names.find((each) => each !== undefined) ?? ''
  // Several letters after one dash, the last with its value: the sandbox accepts only a single letter.
  if (letter !== undefined && (letter.length > 1 || letters.includes(letter))) return line
  if (longNames.includes(name) || (name.length === 1 && letters.includes(name))) return line
  const unsupportedMessage = UNSUPPORTED_MESSAGES.map((message) => message.exec(stderr)?.[0]).find(
    (found) => found !== undefined,
  )
  return unsupportedMessage ?? DIFFERENT_RESULTS.find(({ form }) => form.test(command))?.why ?? null
}
