import { appendFileSync, chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { messageOf } from '../../../domain/refusal.ts'
import { hasCode } from '../../exit-codes.ts'

/** Questions of this run and of earlier ones. */
export interface QuestionHistory {
  /** Oldest first. */
  list(): readonly string[]
  add(question: string): void
}

/** Most questions that are kept between runs. */
export const QUESTIONS_KEPT = 1_000

const OWNER_ONLY = 0o600

/**
 * Opens the question history in a file that only its owner may read. Several terminals may add to it at once.
 *
 * @param path file of the history; null: questions are kept for this run only
 * @param onProblem called once if the file cannot be used: questions are then kept for this run only
 */
export function openQuestionHistory(
  path: string | null,
  onProblem: (problem: string) => void,
): QuestionHistory {
  let isUsable = path !== null
  let questions: string[] = []
  const attempt = (work: (file: string) => void): void => {
    if (path === null || !isUsable) return
    try {
      work(path)
    } catch (error) {
      isUsable = false
      onProblem(`questions are not saved: ${path} cannot be used (${messageOf(error)})`)
    }
  }
  attempt((file) => (questions = readHistoryFile(file)))
  return {
    list: () => questions,
    add(question) {
      questions = lastOf([...questions, question])
      attempt((file) => {
        if (!mayRemember(question)) return
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

/** Keys and tokens by their prefixes, and named passwords. */
const SECRETS = [
  /\bsk-[\w-]{16,}/,
  /\b(?:gh[opusr]|github_pat|glpat|xox[abprs]|hf|r8|npm|pypi)[_-][\w-]{16,}/,
  /\bA[KS]IA[A-Z0-9]{16}\b/,
  /\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/,
  /\bv1\.[\w-]{20,}\.[\w-]{20,}/,
  /-----BEGIN [A-Z ]*PRIVATE KEY/,
  /\b(?:password|passwd|secret|token|api[_-]?key|bearer)\b\s*[:= ]\s*\S{8,}/i,
  /:\/\/[^\s/:@]+:[^\s/@]+@/,
]

/**
 * Returns false for a question that must not be stored: one that begins with a space, as in shells, or seems to
 * hold a secret.
 */
function mayRemember(question: string): boolean {
  return (
    question.trim() !== '' && !question.startsWith(' ') && !SECRETS.some((secret) => secret.test(question))
  )
}
