import type { Draw } from './draw.ts'

/** A file that a day's task asks for, and how it is judged. */
export interface AskedFile {
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
export const FILE_KINDS: readonly FileKind[] = [settings, makefile, readme, ignore, table, script]

function capitalised(word: string): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1)
}
