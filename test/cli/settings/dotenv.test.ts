import { execFileSync, spawn } from 'node:child_process'
import { expect, onTestFinished, test } from 'vitest'
import { parseDotenv, readDotenv } from '../../../src/cli/settings/dotenv.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const parse = (text: string, encoding: BufferEncoding = 'utf8') =>
  parseDotenv(Buffer.from(text, encoding), '/srv/.env')

test.each<[string, Record<string, string>]>([
  ['', {}],
  ['\n \t\n# a comment = x\n\t# another\n', {}],
  ['PORT=1\rHOST=a', { PORT: '1', HOST: 'a' }],
  [' \t PORT \t = \t 1 \t ', { PORT: '1' }],
  ['export PORT=1\n\texport\tHOST = a', { PORT: '1', HOST: 'a' }],
  ['A=b # C=c\nB=b#c\nC=#c\nD=b\t#c', { A: 'b', B: 'b#c', C: '#c', D: 'b' }],
  ['A=host=b user=c\nB=a;UID=b', { A: 'host=b user=c', B: 'a;UID=b' }],
  [`A='b # "c"' # d\nB="e"#f\nC=\`g\``, { A: 'b # "c"', B: 'e', C: 'g' }],
  [String.raw`A="b\nc" ` + '\n' + String.raw`B='b\nc'`, { A: 'b\nc', B: String.raw`b\nc` }],
  [
    String.raw`A="{\"b\": 1}" # c` + '\n' + String.raw`B="C:\data\"` + '\nC="x"',
    { A: '{"b": 1}', B: 'C:\\data\\', C: 'x' },
  ],
  ['\u00A0A\u200B=\u00A0b\u00A0# c\n\uFEFFB=c\u3000', { A: 'b', B: 'c' }],
])('the env file %j is read as %j', (text, values) => {
  expect(parse(text)).toEqual(values)
})

test.each<[string, number]>([
  ['PORT=1\n\n# x\nSesame', 4],
  ['A="Sesame"x\nB="y"', 1],
  ["A='Sesame", 1],
  ['=Sesame', 1],
  ['A=/srv/Sesame\u2028PORT=1', 1],
  ['A=“/srv/Sesame”', 1],
  ['export A=/srv/Sesame \t PORT=1', 1],
])('the env file %j is refused with its line %i and without its text', (text, line) => {
  const refused = (): unknown => parse(text)
  expect(refused).toThrow(
    `the env file /srv/.env cannot be read: line ${line} is neither NAME=value nor a comment`,
  )
  expect(refused).not.toThrow('Sesame')
})

test('a file in UTF-16, with and without a byte order mark, is refused', () => {
  for (const text of ['PORT=1\n', '\uFEFFPORT=1\n'])
    expect(() => parse(text, 'utf16le')).toThrow('line 1 is not UTF-8 text; save the file as UTF-8')
  expect(() => parseDotenv(Buffer.from(Buffer.from('\uFEFFPORT=1', 'utf16le')).swap16(), '')).toThrow(
    'line 1',
  )
})

test('a byte that is not UTF-8 is refused with the number of its line', () => {
  expect(() => parse('A=1\nB=\u00FC\n', 'latin1')).toThrow('line 2 is not UTF-8 text')
})

test('an env file may be a pipe, whose content is kept, or the null device', () => {
  const cwd = temporaryFolder()
  execFileSync('mkfifo', ['.env'], { cwd })
  const writer = spawn('sh', ['-c', 'echo PORT=1 > .env'], { cwd })
  onTestFinished(() => void writer.kill())
  for (const named of [undefined, '.env']) expect(readDotenv(named, cwd)).toEqual({ PORT: '1' })
  expect(readDotenv('/dev/null', cwd)).toEqual({})
})
