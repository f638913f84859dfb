import { z } from 'zod'
import type { Draw, Graded } from './grade.ts'
import type { LiteQuestion, ModelReply } from './suite.ts'

/** One day's files. */
export interface FilesItem {
  question: LiteQuestion
  asked: readonly AskedFile[]
}

/** Files a day asks for. */
const FILES = 3

/** Points; 350 together with three files of two properties each. */
const POINTS = { usedTool: 35, validCalls: 35, noUnsafePaths: 25, created: 25, property: 30 } as const

/** Enough for the longest solution ten times over, and for models that reason first. */
const MAX_TOKENS = 3000

/** Draws which files are asked for, their paths and contents. */
export function drawFiles(draw: Draw): FilesItem {
  const asked = draw.sample(FILE_KINDS, FILES).map((kind) => kind(draw))
  const list = asked.map(({ path, asks }, index) => `${index + 1}. ${path}: ${asks}`).join('\n')
  const content = `Write these ${FILES} files with the tool ${WRITE_FILE}, one call for each file. Use the paths exactly as given. Do not print the files in your answer.\n\n${list}`
  return {
    question: {
      kind: 'tool',
      messages: [{ role: 'user', content }],
      tools: [WRITE_FILE_TOOL],
      maxTokens: MAX_TOKENS,
    },
    asked,
  }
}

/**
 * Grades the calls of a reply. The form of the calls earns points only once a file that was asked for is there: a call
 * that writes something else has shown nothing.
 */
export function gradeFiles({ asked }: FilesItem, reply: ModelReply): Graded {
  const written = writeFiles(reply)
  const usedTool = written.callsOfTool > 0
  const form = {
    usedTool,
    validCalls: usedTool && written.unknownName + written.invalidJson + written.schemaMismatch === 0,
    noUnsafePaths: usedTool && written.unsafePaths === 0,
  }
  const ofFiles = asked.map((file) => judgeFile(file, written.files.get(file.path)))
  const created = ofFiles.filter((file) => file.created).length
  const held = ofFiles.flatMap((file) => Object.values(file.properties)).filter(Boolean).length
  const formPoints =
    (form.usedTool ? POINTS.usedTool : 0) +
    (form.validCalls ? POINTS.validCalls : 0) +
    (form.noUnsafePaths ? POINTS.noUnsafePaths : 0)
  const details = {
    ...form,
    ...Object.assign(
      {},
      ...ofFiles.map(({ kind, created: there, properties }) => ({
        [`${kind}Created`]: there,
        ...properties,
      })),
    ),
    calls: written.calls,
    invalidJson: written.invalidJson,
    unknownName: written.unknownName,
    schemaMismatch: written.schemaMismatch,
    toolCallAsText: !usedTool && looksLikeCall(reply.text),
  }
  const points = created === 0 ? 0 : formPoints + created * POINTS.created + held * POINTS.property
  return { points, details }
}

/** The calls that earn every point. */
export function solveFiles({ asked }: FilesItem): ModelReply {
  const toolCalls = asked.map(({ path, solution }) => ({
    name: WRITE_FILE,
    arguments: JSON.stringify({ path, content: solution }),
  }))
  return { text: '', toolCalls, finishReason: 'tool_calls' }
}

/** True when every call is valid and there is one: the form that was asked for, whatever was written. */
export function calledAsAsked(reply: ModelReply): boolean {
  const { calls, unknownName, invalidJson, schemaMismatch } = writeFiles(reply)
  return calls > 0 && unknownName + invalidJson + schemaMismatch === 0
}

function judgeFile(
  { kind, properties }: AskedFile,
  content: string | undefined,
): { kind: string; created: boolean; properties: Record<string, boolean> } {
  const judged = properties.map((property) => [
    property.name,
    content !== undefined && property.holds(content),
  ])
  return {
    kind,
    created: content !== undefined,
    properties: Object.fromEntries(judged) as Record<string, boolean>,
  }
}

/** A file that a day's task asks for, and how it is judged. */
interface AskedFile {
  /** First word of the names of its properties: `readmeCreated`. */
  kind: string
  path: string
  /** The paragraph of the question that asks for it. */
  asks: string
  /** A content that has every property. */
  solution: string
  /** Two properties of the content, in the order of their names. */
  properties: readonly { name: string; holds(content: string): boolean }[]
}

type FileKind = (draw: Draw) => AskedFile

const NAMES = [
  'harbor',
  'meadow',
  'copper',
  'lantern',
  'juniper',
  'granite',
  'saffron',
  'willow',
  'cobalt',
  'maple',
]
const PEOPLE = ['Miller, Ann', 'Okafor, Ben', 'Silva, Rita', 'Tanaka, Ken', 'Novak, Eva', 'Haddad, Omar']
const PLACES = ['Größe', 'Café', 'Łódź', 'São Paulo', 'Malmö', 'Curaçao']

const lines = (content: string): string[] => content.split(/\r?\n/)
const hasLine = (content: string, line: string): boolean =>
  lines(content).some((each) => each.trimEnd() === line)

const settings: FileKind = (draw) => {
  const [name, drive, word] = [draw.word(6), draw.word(5), draw.pick(NAMES)]
  const retries = draw.integer(11, 99)
  const motto = `say "${word}" to C:\\${drive}`
  const read = (content: string): Record<string, unknown> => {
    try {
      return Object(JSON.parse(content)) as Record<string, unknown>
    } catch {
      return {}
    }
  }
  return {
    kind: 'settings',
    path: `${draw.word(5)}/${draw.pick(NAMES)}.json`,
    asks: `a JSON object with exactly three members: "name" is the string ${name}, "retries" is the number ${retries}, and "motto" is a string whose value, once parsed, is exactly: ${motto}`,
    solution: `${JSON.stringify({ name, retries, motto }, null, 2)}\n`,
    properties: [
      {
        name: 'settingsValues',
        holds(content) {
          const value = read(content)
          return value['name'] === name && value['retries'] === retries && Object.keys(value).length === 3
        },
      },
      { name: 'settingsEscapes', holds: (content) => read(content)['motto'] === motto },
    ],
  }
}

const makefile: FileKind = (draw) => {
  const [target, word] = [draw.pick(NAMES), draw.word(6)]
  return {
    kind: 'makefile',
    path: `${draw.word(5)}/${draw.word(4)}.mk`,
    asks: `a makefile with one target named ${target}, without prerequisites, whose only recipe line is the command: echo ${word} (a recipe line begins with a tab character)`,
    solution: `${target}:\n\techo ${word}\n`,
    properties: [
      { name: 'makefileHasTarget', holds: (content) => hasLine(content, `${target}:`) },
      {
        name: 'makefileHasTab',
        holds: (content) =>
          lines(content).some((line) => new RegExp(`^\t@?echo "?${word}"?$`).test(line.trimEnd())),
      },
    ],
  }
}

const readme: FileKind = (draw) => {
  const title = draw.sample(NAMES, 2).map(capitalised).join(' ')
  const line = `${draw.pick(PLACES)} – ${draw.integer(11, 99)} µm`
  return {
    kind: 'readme',
    path: `${draw.word(5)}/README.md`,
    asks: `Markdown whose first line is a level-one heading with the text ${title}, and which has this line, unchanged, on its own: ${line}`,
    solution: `# ${title}\n\n${line}\n`,
    properties: [
      { name: 'readmeHasTitle', holds: (content) => lines(content)[0]?.trimEnd() === `# ${title}` },
      { name: 'readmeHasUnicode', holds: (content) => hasLine(content.normalize('NFC'), line) },
    ],
  }
}

const ignore: FileKind = (draw) => {
  const [pattern, folder] = [`*.${draw.word(3)}`, `${draw.pick(NAMES)}-${draw.word(3)}/`]
  return {
    kind: 'ignore',
    path: `${draw.word(5)}/.gitignore`,
    asks: `two lines and nothing else: ${pattern} first, then ${folder}`,
    solution: `${pattern}\n${folder}\n`,
    properties: [
      { name: 'ignoreHasLines', holds: (content) => hasLine(content, pattern) && hasLine(content, folder) },
      {
        name: 'ignoreHasNothingElse',
        holds: (content) =>
          lines(content)
            .filter((line) => line.trim() !== '')
            .join('\n') === `${pattern}\n${folder}`,
      },
    ],
  }
}

const table: FileKind = (draw) => {
  const [person, points] = [draw.pick(PEOPLE), draw.integer(11, 99)]
  const header = `${draw.word(4)},name,points`
  const row = `${draw.integer(1, 9)},"${person}",${points}`
  return {
    kind: 'table',
    path: `${draw.word(5)}/${draw.pick(NAMES)}.csv`,
    asks: `comma-separated values: the header line ${header} and then one row with the three values ${row.slice(0, 1)} and ${person} and ${points}, the middle one in double quotes because it has a comma`,
    solution: `${header}\n${row}\n`,
    properties: [
      { name: 'tableHasHeader', holds: (content) => lines(content)[0]?.trimEnd() === header },
      { name: 'tableHasQuotedRow', holds: (content) => lines(content)[1]?.trimEnd() === row },
    ],
  }
}

const script: FileKind = (draw) => {
  const greeting = `Hello, ${draw.word(6)}!`
  const shebang = '#!/usr/bin/env python3'
  return {
    kind: 'script',
    path: `${draw.word(5)}/${draw.pick(NAMES)}.py`,
    asks: `a Python script whose first line is ${shebang} and which prints the text ${greeting} with one call of print at the start of a line`,
    solution: `${shebang}\nprint("${greeting}")\n`,
    properties: [
      { name: 'scriptHasShebang', holds: (content) => lines(content)[0]?.trimEnd() === shebang },
      {
        name: 'scriptPrintsGreeting',
        holds: (content) =>
          hasLine(content, `print("${greeting}")`) || hasLine(content, `print('${greeting}')`),
      },
    ],
  }
}

/** Every kind of file that a day may ask for. Each has three properties: it was created, and two of its content. */
const FILE_KINDS: readonly FileKind[] = [settings, makefile, readme, ignore, table, script]

function capitalised(word: string): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1)
}

/** Name of the one tool that the files task offers. */
const WRITE_FILE = 'write_file'

const writeFileSchema = z.strictObject({
  path: z.string().describe('Relative path of the file, with forward slashes'),
  content: z.string().describe('The whole content of the file'),
})

// Some services refuse a schema that names its own draft.
const { $schema: _draft, ...parameters } = z.toJSONSchema(writeFileSchema, { target: 'draft-7' })

/** The tool as a request offers it; its calls are held against the same schema. */
export const WRITE_FILE_TOOL = {
  name: WRITE_FILE,
  description: 'Writes one text file. Folders are made as needed; a file that is there is replaced.',
  parameters: parameters as Record<string, unknown>,
}

/** What a reply's calls did. A call that is not valid, or whose path is not safe, writes nothing. */
export interface WrittenFiles {
  /** Content by path, without a leading `./`. */
  files: ReadonlyMap<string, string>
  calls: number
  /** Calls of the tool that was offered, sound or not. */
  callsOfTool: number
  /** The three ways in which a call is not valid, each call counted once, in this order. */
  unknownName: number
  invalidJson: number
  schemaMismatch: number
  unsafePaths: number
}

/** Carries out the calls of a reply, on a map. */
export function writeFiles({ toolCalls }: Pick<ModelReply, 'toolCalls'>): WrittenFiles {
  const files = new Map<string, string>()
  const counts = { unknownName: 0, invalidJson: 0, schemaMismatch: 0, unsafePaths: 0 }
  for (const call of toolCalls) {
    const outcome = readCall(call)
    if (typeof outcome === 'string') counts[outcome] += 1
    else files.set(outcome.path, outcome.content)
  }
  const callsOfTool = toolCalls.length - counts.unknownName
  return { files, calls: toolCalls.length, callsOfTool, ...counts }
}

type CallProblem = 'unknownName' | 'invalidJson' | 'schemaMismatch' | 'unsafePaths'

function readCall(call: {
  name: string
  arguments: string
}): { path: string; content: string } | CallProblem {
  if (call.name !== WRITE_FILE) return 'unknownName'
  const parsed = parseJson(call.arguments)
  if (parsed === undefined) return 'invalidJson'
  const checked = writeFileSchema.safeParse(parsed)
  if (!checked.success) return 'schemaMismatch'
  const path = safePath(checked.data.path)
  return path === null ? 'unsafePaths' : { path, content: checked.data.content }
}

/**
 * A path below the working folder without its leading `./`, or null for any that could lead elsewhere: absolute, with
 * `..`, `~` or a drive letter in front, with a backslash, NUL or another control character, or longer than 255.
 */
export function safePath(path: string): string | null {
  const segments = path.split('/')
  const leading = /^(?:\/|~|[A-Za-z]:)/.test(path)
  if (leading || /[\\\p{Cc}]/u.test(path) || path.length > 255) return null
  if (segments.includes('..')) return null
  const kept = segments.filter((segment) => segment !== '' && segment !== '.')
  return kept.length === 0 || path.endsWith('/') ? null : kept.join('/')
}

/** The forms in which models print a call that they should have made. */
const CALLS_AS_TEXT = [
  /<\/?(?:minimax:)?tool_calls?>/i,
  /<\|?(?:tool_call|tool▁call|python_tag)/i,
  /<function(?:=|_calls?>|>)|<invoke name=/i,
  /\[TOOL_CALLS\]/,
  /<\|channel\|>[^<]*to=/,
  /"(?:name|function|tool)"\s*:\s*"(?:functions\.)?write_file"/,
  /\bwrite_file\s*\(/,
]

/** True for text that looks like a call of a tool. */
export function looksLikeCall(text: string): boolean {
  return CALLS_AS_TEXT.some((form) => form.test(text))
}

/** undefined for a text that is no JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
