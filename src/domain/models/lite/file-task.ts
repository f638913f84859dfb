import { z } from 'zod'
import { parseJson } from '../../json.ts'
import type { Draw, Grade, LitePrompt, ModelResponse } from './suite.ts'
import { sumPoints } from './suite.ts'

export interface FilesItem {
  prompt: LitePrompt
  requested: readonly RequestedFile[]
}

interface RequestedFile {
  /** Prefix of its property names: `readmeCreated`. */
  kind: string
  path: string
  /** The paragraph of the prompt that requests it. */
  instruction: string
  /** A content with every property. */
  solution: string
  /** Two checks of the content, by name. */
  properties: Readonly<Record<string, (content: string) => boolean>>
}

const FILES = 3

/** Points; 350 together with three files of two properties each. */
const POINTS = { usedTool: 35, validCalls: 35, noUnsafePaths: 25, created: 25, property: 30 } as const

/** Ten times the longest solution, with room for reasoning. */
const MAX_TOKENS = 3000

/** Draws the requested files, their paths and contents. */
export function drawFiles(draw: Draw): FilesItem {
  const requested = draw.sample(FILE_KINDS, FILES).map((kind) => kind(draw))
  const list = requested
    .map(({ path, instruction }, index) => `${index + 1}. ${path}: ${instruction}`)
    .join('\n')
  const content = `Write these ${FILES} files with the tool ${WRITE_FILE}, one call for each file. Use the paths exactly as given. Do not print the files in your answer.\n\n${list}`
  const messages = [{ role: 'user' as const, content }]
  return {
    prompt: { messages, tools: [WRITE_FILE_TOOL], maxTokens: MAX_TOKENS },
    requested,
  }
}

/** Grades the calls of a response. The form of the calls earns points only when at least one requested file exists. */
export function gradeFiles({ requested }: FilesItem, response: ModelResponse): Grade {
  const written = writeFiles(response)
  const { files, calls, invalidJson, unknownName, schemaMismatch, unsafePaths } = written
  const usedTool = calls > unknownName
  const form = {
    usedTool,
    validCalls: usedTool && isValid(written),
    noUnsafePaths: usedTool && unsafePaths === 0,
  }
  const judged = requested.flatMap(({ kind, path, properties }): [string, boolean][] => {
    const content = files.get(path)
    const judgedProperties = Object.entries(properties).map(([name, holds]): [string, boolean] => [
      name,
      content !== undefined && holds(content),
    ])
    return [[`${kind}Created`, content !== undefined], ...judgedProperties]
  })
  const created = requested.filter(({ path }) => files.has(path)).length
  const judgedProperties = judged.filter(([, holds]) => holds).length - created
  const formPoints = sumPoints(form, POINTS)
  return {
    points: created === 0 ? 0 : formPoints + created * POINTS.created + judgedProperties * POINTS.property,
    details: {
      ...form,
      ...Object.fromEntries(judged),
      calls,
      invalidJson,
      unknownName,
      schemaMismatch,
      toolCallAsText: !usedTool && looksLikeCall(response.text),
    },
  }
}

/** True when there is at least one call and all are valid, whatever they write. */
export function callsFollowFormat(response: ModelResponse): boolean {
  const written = writeFiles(response)
  return written.calls > 0 && isValid(written)
}

function isValid({ unknownName, invalidJson, schemaMismatch }: WrittenFiles): boolean {
  return unknownName + invalidJson + schemaMismatch === 0
}

const NAMES = 'harbor meadow copper lantern juniper granite saffron willow cobalt maple'.split(' ')
const PEOPLE = ['Miller, Ann', 'Okafor, Ben', 'Silva, Rita', 'Tanaka, Ken', 'Novak, Eva', 'Haddad, Omar']
const PLACES = ['Größe', 'Café', 'Łódź', 'São Paulo', 'Malmö', 'Curaçao']

const lines = (content: string): string[] => content.split(/\r?\n/).map((line) => line.trimEnd())

const FILE_KINDS: readonly ((draw: Draw) => RequestedFile)[] = [
  settings,
  makefile,
  readme,
  ignore,
  table,
  script,
]

function settings(draw: Draw): RequestedFile {
  const [name, drive, word] = [draw.word(6), draw.word(5), draw.pick(NAMES)]
  const retries = draw.integer(11, 99)
  const motto = `say "${word}" to C:\\${drive}`
  const values: Record<string, unknown> = { name, retries, motto }
  const read = (content: string): typeof values => Object(parseJson(content)) as typeof values
  return {
    kind: 'settings',
    path: `${draw.word(5)}/${draw.pick(NAMES)}.json`,
    instruction: `a JSON object with exactly three members: "name" is the string ${name}, "retries" is the number ${retries}, and "motto" is a string whose value, once parsed, is exactly: ${motto}`,
    solution: `${JSON.stringify(values, null, 2)}\n`,
    properties: {
      settingsValues(content) {
        const value = read(content)
        return value['name'] === name && value['retries'] === retries && Object.keys(value).length === 3
      },
      settingsEscapes: (content) => read(content)['motto'] === motto,
    },
  }
}

function makefile(draw: Draw): RequestedFile {
  const [target, word] = [draw.pick(NAMES), draw.word(6)]
  const recipe = new RegExp(`^\t@?echo "?${word}"?$`)
  return {
    kind: 'makefile',
    path: `${draw.word(5)}/${draw.word(4)}.mk`,
    instruction: `a makefile with one target named ${target}, without prerequisites, whose only recipe line is the command: echo ${word} (a recipe line begins with a tab character)`,
    solution: `${target}:\n\techo ${word}\n`,
    properties: {
      makefileHasTarget: (content) => lines(content).includes(`${target}:`),
      makefileHasTab: (content) => lines(content).some((line) => recipe.test(line)),
    },
  }
}

function readme(draw: Draw): RequestedFile {
  const titleWords = draw.sample(NAMES, 2).map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
  const title = titleWords.join(' ')
  const line = `${draw.pick(PLACES)} – ${draw.integer(11, 99)} µm`
  return {
    kind: 'readme',
    path: `${draw.word(5)}/README.md`,
    instruction: `Markdown whose first line is a level-one heading with the text ${title}, and which has this line, unchanged, on its own: ${line}`,
    solution: `# ${title}\n\n${line}\n`,
    properties: {
      readmeHasTitle: (content) => lines(content)[0] === `# ${title}`,
      readmeHasUnicode: (content) => lines(content.normalize('NFC')).includes(line),
    },
  }
}

function ignore(draw: Draw): RequestedFile {
  const both = [`*.${draw.word(3)}`, `${draw.pick(NAMES)}-${draw.word(3)}/`]
  return {
    kind: 'ignore',
    path: `${draw.word(5)}/.gitignore`,
    instruction: `two lines and nothing else: ${both.join(' first, then ')}`,
    solution: `${both.join('\n')}\n`,
    properties: {
      ignoreHasLines: (content) => both.every((line) => lines(content).includes(line)),
      ignoreHasNothingElse(content) {
        const kept = content.split(/\r?\n/).filter((line) => line.trim() !== '')
        return kept.join('\n') === both.join('\n')
      },
    },
  }
}

function table(draw: Draw): RequestedFile {
  const [person, points] = [draw.pick(PEOPLE), draw.integer(11, 99)]
  const header = `${draw.word(4)},name,points`
  const row = `${draw.integer(1, 9)},"${person}",${points}`
  return {
    kind: 'table',
    path: `${draw.word(5)}/${draw.pick(NAMES)}.csv`,
    instruction: `comma-separated values: the header line ${header} and then one row with the three values ${row.slice(0, 1)} and ${person} and ${points}, the middle one in double quotes because it has a comma`,
    solution: `${header}\n${row}\n`,
    properties: {
      tableHasHeader: (content) => lines(content)[0] === header,
      tableHasQuotedRow: (content) => lines(content)[1] === row,
    },
  }
}

function script(draw: Draw): RequestedFile {
  const greeting = `Hello, ${draw.word(6)}!`
  const shebang = '#!/usr/bin/env python3'
  const prints = [`print("${greeting}")`, `print('${greeting}')`]
  return {
    kind: 'script',
    path: `${draw.word(5)}/${draw.pick(NAMES)}.py`,
    instruction: `a Python script whose first line is ${shebang} and which prints the text ${greeting} with one call of print at the start of a line`,
    solution: `${shebang}\n${prints[0]}\n`,
    properties: {
      scriptHasShebang: (content) => lines(content)[0] === shebang,
      scriptPrintsGreeting: (content) => lines(content).some((line) => prints.includes(line)),
    },
  }
}

/** Name of the only tool of the files task. */
const WRITE_FILE = 'write_file'

const writeFileSchema = z.strictObject({
  path: z.string().describe('Relative path of the file, with forward slashes'),
  content: z.string().describe('The whole content of the file'),
})

// Some services reject a schema with `$schema`.
const { $schema: _draft, ...parameters } = z.toJSONSchema(writeFileSchema, { target: 'draft-7' })

/** The tool definition; its calls are checked against the same schema. */
export const WRITE_FILE_TOOL = {
  name: WRITE_FILE,
  description: 'Writes one text file. Folders are made as needed; a file that is there is replaced.',
  parameters: parameters as Record<string, unknown>,
}

/** The effect of a response's calls. An invalid call, or one with an unsafe path, writes nothing. */
interface WrittenFiles {
  /** Content by path, without a leading `./`. */
  files: ReadonlyMap<string, string>
  calls: number
  /** Calls that write nothing, by their first problem in this order. */
  unknownName: number
  invalidJson: number
  schemaMismatch: number
  unsafePaths: number
}

function writeFiles({ toolCalls }: Pick<ModelResponse, 'toolCalls'>): WrittenFiles {
  const files = new Map<string, string>()
  const counts = { unknownName: 0, invalidJson: 0, schemaMismatch: 0, unsafePaths: 0 }
  for (const call of toolCalls) {
    const read = parseWriteCall(call)
    if (typeof read === 'string') counts[read] += 1
    else files.set(read.path, read.content)
  }
  return { files, calls: toolCalls.length, ...counts }
}

function parseWriteCall(
  call: ModelResponse['toolCalls'][number],
): z.infer<typeof writeFileSchema> | Exclude<keyof WrittenFiles, 'files' | 'calls'> {
  if (call.name !== WRITE_FILE) return 'unknownName'
  const parsed = parseJson(call.arguments)
  if (parsed === undefined) return 'invalidJson'
  const { data } = writeFileSchema.safeParse(parsed)
  if (!data) return 'schemaMismatch'
  const path = safePath(data.path)
  return path === null ? 'unsafePaths' : { ...data, path }
}

/**
 * Normalises a relative path; null for one that could lead elsewhere: absolute, with `..`, with a leading `~` or drive
 * letter, with a backslash or control character, or longer than 255.
 */
export function safePath(path: string): string | null {
  if (/^(?:\/|~|[A-Za-z]:)|[\\\p{Cc}]|\/$/u.test(path) || path.length > 255) return null
  const segments = path.split('/')
  const kept = segments.filter((segment) => segment !== '' && segment !== '.')
  return kept.length === 0 || segments.includes('..') ? null : kept.join('/')
}

/** Text forms of calls that models print instead of calling the tool. */
const CALLS_AS_TEXT = [
  /<\/?(?:minimax:)?tool_calls?>/i,
  /<\|?(?:tool_call|tool▁call|python_tag)/i,
  /<function(?:=|_calls?>|>)|<invoke name=/i,
  /\[TOOL_CALLS\]/,
  /<\|channel\|>[^<]*to=/,
  /"(?:name|function|tool)"\s*:\s*"(?:functions\.)?write_file"/,
  /\bwrite_file\s*\(/,
]

export function looksLikeCall(text: string): boolean {
  return CALLS_AS_TEXT.some((form) => form.test(text))
}
