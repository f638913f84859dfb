import { drawsFrom, LITE_SUITE } from '../../../src/domain/models/lite/suite.ts'
import type { LiteItems } from '../../../src/jobs/models/lite-suite.ts'
import type { LiteKind, LitePrompt, ModelResponse } from '../../../src/domain/models/lite/suite.ts'

/** The responses that earn all points. */
export function solutions({ files, shell, clock }: LiteItems): Record<LiteKind, ModelResponse> {
  const toolCalls = files.requested.map(({ path, solution }) => ({
    name: 'write_file',
    arguments: JSON.stringify({ path, content: solution }),
  }))
  return {
    tool: { text: '', toolCalls, finishReason: 'tool_calls' },
    text: textResponse(`COMMAND: ${shell.solution}\nTIME: ${clock.expected}`),
  }
}

/** Responses by description. */
type NamedResponses = Record<string, ModelResponse>

/**
 * Responses without any work: empty, an echo, noise, the other prompt's solution, the shown result, and commands whose
 * result cannot be judged.
 */
export function worthlessResponses(items: LiteItems): Record<LiteKind, NamedResponses> {
  const { day, shell, prompts } = items
  const promptText = ({ messages }: LitePrompt): string => messages.map(({ content }) => content).join('\n')
  const noise = drawsFrom(`${LITE_SUITE}|${day}|noise`)
  // Longer than any tool's name, so that no noise word is a command.
  const noiseWords = (): string =>
    Array.from({ length: 8 }, () => noise.word(noise.integer(11, 14))).join(' ')
  const solutionOf = solutions(items)
  const common: NamedResponses = {
    'an empty answer': textResponse(''),
    'an echo of the tool prompt': textResponse(promptText(prompts.tool)),
    'an echo of the text prompt': textResponse(promptText(prompts.text)),
    noise: textResponse(noiseWords()),
    'the calls as text': textResponse(JSON.stringify(solutionOf.tool.toolCalls)),
  }
  const prints = (shell.cases.shown.prints ?? []).map((line) => `'${line}'`).join(' ')
  const tool: NamedResponses = {
    ...common,
    'the solution of the text prompt': solutionOf.text,
    'calls with noise': writeResponse(noise.word(6), noiseWords()),
    'an echo in a call': writeResponse('a.txt', promptText(prompts.tool)),
  }
  const text: NamedResponses = {
    ...common,
    'the solution of the tool prompt': solutionOf.tool,
    'noise in the right form': textResponse(`COMMAND: ${noiseWords()}\nTIME: ${noiseWords()}`),
    'the shown result': textResponse(`COMMAND: printf '%s\\n' ${prints}\nTIME: 00:00:00`),
    'a command that does nothing': textResponse('COMMAND: true\nTIME: 99:99:99'),
    // These do no part of the job, and a sandbox may be unable to run them to the end.
    'an unsupported command alone': textResponse('COMMAND: sort -R nothing\nTIME: 99:99:99'),
    'a command that never ends': textResponse('COMMAND: tail -f x\nTIME: 99:99:99'),
    'a removal of everything before an unsupported command': textResponse(
      'COMMAND: rm -rf -- *; sort -z\nTIME: 99:99:99',
    ),
  }
  return { tool, text }
}

function textResponse(text: string): ModelResponse {
  return { text, toolCalls: [], finishReason: 'stop' }
}

function writeResponse(path: string, content: string): ModelResponse {
  const call = { name: 'write_file', arguments: JSON.stringify({ path, content }) }
  return { text: '', toolCalls: [call], finishReason: 'tool_calls' }
}
