import {
  chmodSync,
  mkdirSync,
  openSync,
  closeSync,
  readFileSync,
  renameSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import {
  mayRemember,
  QUESTIONS_KEPT,
  rememberedLine,
  rememberedQuestions,
} from '../../../domain/agent/remembered-questions.ts'

/** Questions asked in this run and in earlier ones. */
export interface Questions {
  /** Oldest first. */
  list(): readonly string[]
  /** Never throws: what cannot be written down is still in the list. */
  add(question: string): void
  /** Why nothing is remembered from now on; null while all is well. */
  readonly problem: string | null
}

const OWNER_ONLY = 0o600

/**
 * Questions kept in a file that only its owner may read; several terminals may add to it at once.
 *
 * @param path null to remember nothing between runs
 */
export function openQuestions(path: string | null): Questions {
  let problem: string | null = null
  let questions: string[] = []
  const attempt = (work: () => void): void => {
    if (path === null || problem !== null) return
    try {
      work()
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      problem = `questions are not remembered: ${path} cannot be used (${why})`
    }
  }
  attempt(() => {
    if (path !== null) questions = readKept(path)
  })
  return {
    list: () => questions,
    add(question) {
      questions = [...questions.filter((each) => each !== question), question].slice(-QUESTIONS_KEPT)
      attempt(() => {
        if (path !== null && mayRemember(question)) append(path, rememberedLine(question))
      })
    },
    get problem() {
      return problem
    },
  }
}

/** What a file holds; a file that has grown to twice what is kept is written anew. */
function readKept(path: string): string[] {
  const text = readIfThere(path)
  if (text === null) return []
  chmodSync(path, OWNER_ONLY)
  const questions = rememberedQuestions(text)
  if (text.split('\n').length > 2 * QUESTIONS_KEPT) {
    const beside = `${path}.${process.pid}`
    writeFileSync(beside, questions.map(rememberedLine).join(''), { mode: OWNER_ONLY })
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

function append(path: string, line: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const file = openSync(path, 'a', OWNER_ONLY)
  try {
    writeSync(file, line)
  } finally {
    closeSync(file)
  }
}
