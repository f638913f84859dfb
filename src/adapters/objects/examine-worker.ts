import { parentPort, workerData } from 'node:worker_threads'
import { examineBytes } from '../../domain/year/examine.ts'
import { fileExaminer } from './examine-file.ts'
import type { Answer, Question } from './examine-file.ts'

/** Data of a thread that examines objects. */
export interface ExamineWorkerData {
  root: string
  /** True if objects are to be proved too. */
  isProving: boolean
}

export interface AskedQuestion {
  id: number
  question: Question
}

export interface GivenAnswer {
  id: number
  answer: Answer
}

const { root, isProving } = workerData as ExamineWorkerData
const { examineWhole } = isProving
  ? await import('../../domain/year/envelope.ts')
  : { examineWhole: examineBytes }
const answerTo = fileExaminer(root, examineWhole)

parentPort?.on('message', (questions: readonly AskedQuestion[]) => {
  for (const { id, question } of questions) {
    const given: GivenAnswer = { id, answer: answerTo(question) }
    parentPort?.postMessage(given)
  }
})
