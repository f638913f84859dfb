import { appendFileSync, chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { messageOf } from '../../../domain/refusal.ts'
import { hasCode } from '../../exit-codes.ts'

/** Questions of earlier runs, to which those of this run are added. */
export interface QuestionHistory {
  /** Oldest first. */
  earlier: readonly string[]
  /** Stores a question, unless it begins with a space, as in shells. */
  add(question: string): void
}

/** Most questions that are kept between runs. */
export const QUESTIONS_KEPT = 1_000

const OWNER_ONLY = 0o600

/**
 * Opens the question history in a file that only its owner may read. Several terminals may add to it at once.
 *
 * @param path file of the history; null: questions are not stored
 * @param onProblem called once if the file cannot be used: questions are then not stored
 */
export function openQuestionHistory(
  path: string | null,
  onProblem: (problem: string) => void,
): QuestionHistory {
  let isUsable = path !== null
  let earlier: string[] = []
  const attempt = (work: (file: string) => void): void => {
    if (path === null || !isUsable) return
    try {
      work(path)
    } catch (error) {
      isUsable = false
      onProblem(`questions are not saved: ${path} cannot be used (${messageOf(error)})`)
    }
  }
  attempt((file) => (earlier = readHistoryFile(file)))
  return {
    earlier,
    add(question) {
      if (question.startsWith(' ') || question.trim() === '') return
      attempt((file) => {
        mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
        appendFileSync(file, lineOf(question), { mode: OWNER_ONLY })
      })
    },
  }
}

/** Reads the questions of a file, and rewrites it when it has grown to twice the kept number. */
function readHistoryFile(path: string): string[] {
  const text = readIfPresent(path)
  if (text === null) return []
  const lines = text.split('\n')
  chmodSync(path, OWNER_ONLY)
  const questions = lastOf(lines.flatMap(parseLine))
  if (lines.length > 2 * QUESTIONS_KEPT) {
    const temporary = `${path}.${process.pid}`
    writeFileSync(temporary, questions.map(lineOf).join(''), { mode: OWNER_ONLY })
    renameSync(temporary, path)
  }
  return questions
}

/** Node versions differ in whether `statSync` throws for a file in place of a folder; reading always does. */
function readIfPresent(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (hasCode(error, /^ENOENT$/)) return null
    throw error
  }
}

/** Returns each question at its last use, limited to the newest. */
function lastOf(questions: readonly string[]): string[] {
  return [...new Set(questions.toReversed())].slice(0, QUESTIONS_KEPT).toReversed()
}

function lineOf(question: string): string {
  return `${JSON.stringify(question)}\n`
}

function parseLine(line: string): string[] {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'string' && value !== '' ? [value] : []
  } catch {
    return []
  }
}
