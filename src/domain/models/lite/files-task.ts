import type { ModelReply } from '../reply.ts'
import type { Draw } from './draw.ts'
import { FILE_KINDS } from './file-kinds.ts'
import type { AskedFile } from './file-kinds.ts'
import type { Graded } from './grade.ts'
import type { LiteQuestion } from './suite.ts'
import { WRITE_FILE, WRITE_FILE_TOOL, looksLikeCall, writeFiles } from './write-file.ts'

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
