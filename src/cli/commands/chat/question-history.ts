import { appendFileSync, chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { messageOf } from '../../../domain/refusal.ts'

/** Questions asked in this run and in earlier ones. */
export interface QuestionHistory {
  /** Oldest first. */
  list(): readonly string[]
  add(question: string): void
}

/** How many questions are remembered between runs. */
export const QUESTIONS_KEPT = 1_000

const OWNER_ONLY = 0o600

/**
 * Questions kept in a file that only its owner may read; several terminals may add to it at once.
 *
 * @param path null to remember nothing between runs
 * @param onProblem is told once why the file cannot be used: from then on questions are kept for this run alone
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
      onProblem(`questions are not remembered: ${path} cannot be used (${messageOf(error)})`)
    }
  }
  attempt((file) => (questions = readKept(file)))
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

/** The questions of a file; one that has grown to twice what is kept is written anew. */
function readKept(path: string): string[] {
  const lines = readIfThere(path)?.split('\n')
  if (!lines) return []
  chmodSync(path, OWNER_ONLY)
  const questions = lastOf(lines.flatMap(parseLine))
  if (lines.length > 2 * QUESTIONS_KEPT) {
    const beside = `${path}.${process.pid}`
    writeFileSync(beside, questions.map(lineOf).join(''), { mode: OWNER_ONLY })
    renameSync(beside, path)
  }
  return questions
}

function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
}

/** Each question where it was asked last, the latest of too many. */
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

/** Keys and tokens as their makers mark them, and a password that is named one. */
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
 * Whether a question may be written down: not one that begins with a space, as shells have it, and none that holds what
 * looks like a secret.
 */
function mayRemember(question: string): boolean {
  return (
    question.trim() !== '' && !question.startsWith(' ') && !SECRETS.some((secret) => secret.test(question))
  )
}
