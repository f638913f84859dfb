import type { H3Event } from 'h3'
import { parseJson } from '../../domain/text.ts'
import { Refusal } from '../../domain/refusal.ts'
import { readBody } from '../route.ts'
import type { Route } from '../route.ts'
import { DASH_MODEL } from './completion-output.ts'
import type { AnswerAsDash } from './dash-model.ts'
import { respondError } from './openai-error.ts'

/** Largest body of a request, in bytes. */
const BODY_MAX_BYTES = 4 * 1024 * 1024

/** The routes of `/v1`; other paths and methods below it are errors in OpenAI's shape too. No response has CORS headers. */
export function v1Routes(answerAsDash: AnswerAsDash): Route[] {
  return [
    {
      path: '/v1/chat/completions',
      handle: (event) => {
        if (event.req.method === 'POST') return answerCompletion(event, answerAsDash)
        const error = respondError(event, 405, 'method_not_allowed', 'send the request with POST', {
          allow: 'POST',
        })
        return Promise.resolve(error)
      },
    },
    {
      path: '/v1/**',
      handle: (event) =>
        Promise.resolve(respondError(event, 404, 'not_found', 'the path is not part of /v1')),
    },
  ]
}

async function answerCompletion(event: H3Event, answerAsDash: AnswerAsDash): Promise<Response> {
  const body = await readBody(event, BODY_MAX_BYTES, {
    tooLarge: () => new Refusal<BodyRefusal>('payload_too_large'),
    malformed: () => new Refusal<BodyRefusal>('invalid_json'),
  }).catch((error: unknown) => error)
  if (typeof body !== 'string') return refuseBody(event, body)
  const request = parseJson(body)
  if (typeof request !== 'object' || request === null) return refuseBody(event, new Refusal('invalid_json'))
  if ('model' in request && request.model === DASH_MODEL) return answerAsDash(event, request)
  const message = `the model does not exist; this server has the model ${DASH_MODEL}`
  return respondError(event, 404, 'model_not_found', message)
}

type BodyRefusal = 'payload_too_large' | 'invalid_json'

function refuseBody(event: H3Event, error: unknown): Response {
  if (!(error instanceof Refusal)) throw error
  if (error.code === 'invalid_json')
    return respondError(event, 400, error.code, 'the body is not a JSON object')
  return respondError(event, 413, error.code, `the body has more than ${BODY_MAX_BYTES} bytes`)
}
