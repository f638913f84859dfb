import type { Api } from './provider-wire.ts'

type Fields = Record<string, unknown>

/** What makes a request one that providers decline, or null. */
export function breachOf(api: Api, body: Fields): string | null {
  const calls = api === 'chat' ? chatCalls(body) : responsesCalls(body)
  const ids = calls.made.map(({ id }) => id)
  if (new Set(ids).size !== ids.length) return `a call id is repeated: ${ids.join(' ')}`
  if (JSON.stringify(calls.answered) !== JSON.stringify(ids)) {
    return `calls ${ids.join(' ')} and results ${calls.answered.join(' ')} do not pair`
  }
  for (const { name, text } of calls.made) {
    if (!/^[\w-]{1,64}$/.test(name)) return `a call has the name ${name}`
    try {
      JSON.parse(text)
    } catch {
      return `a call has the arguments ${text}`
    }
  }
  return null
}

interface Calls {
  made: { id: string; name: string; text: string }[]
  answered: string[]
}

function responsesCalls(body: Fields): Calls {
  const items = body['input'] as Record<string, string>[]
  return {
    made: items
      .filter(({ type }) => type === 'function_call')
      .map((item) => ({
        id: item['call_id'] ?? '',
        name: item['name'] ?? '',
        text: item['arguments'] ?? '',
      })),
    answered: items
      .filter(({ type }) => type === 'function_call_output')
      .map((item) => item['call_id'] ?? ''),
  }
}

function chatCalls(body: Fields): Calls {
  const messages = body['messages'] as {
    role: string
    tool_call_id?: string
    tool_calls?: { id: string; function: { name: string; arguments: string } }[]
  }[]
  return {
    made: messages
      .flatMap((message) => message.tool_calls ?? [])
      .map(({ id, function: told }) => ({ id, name: told.name, text: told.arguments })),
    answered: messages.flatMap((message) => (message.role === 'tool' ? [message.tool_call_id ?? ''] : [])),
  }
}
