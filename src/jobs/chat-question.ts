import { classifyAnswer } from '../domain/models/classify-answer.ts'
import type { Verdict } from '../domain/models/answer-class.ts'
import type { CatalogueModel } from '../domain/models/catalogue.ts'
import { isCutShort } from '../domain/models/lite/cut-short.ts'
import type { LiteKind, LiteSuite } from '../domain/models/lite/suite.ts'
import type { ChatCall, RouterAnswer } from '../domain/models/router.ts'

/** A question as the service is sent it, fitted to what the catalogue says of its model. */
export function chatCallOf(
  { model, kind }: { model: string; kind: LiteKind },
  suite: LiteSuite,
  listed: CatalogueModel | undefined,
): ChatCall {
  const question = suite.questions[kind]
  const parameters = listed?.supportedParameters ?? []
  const thinks = parameters.includes('reasoning')
  return {
    model,
    question,
    maxTokens: Math.min(question.maxTokens, listed?.maxCompletionTokens ?? Infinity),
    temperature: parameters.includes('temperature'),
    lowEffort: thinks,
  }
}

/** What an answer to a question means: a reply that was cut before it came to what was asked for is none. */
export function judgeAnswer(answer: RouterAnswer, kind: LiteKind): Verdict {
  const verdict = classifyAnswer(answer)
  if (verdict.reply === null || !isCutShort(kind, verdict.reply)) return verdict
  return { ...verdict, class: 'cut_answer', because: 'cut at its limit of tokens', reply: null }
}
