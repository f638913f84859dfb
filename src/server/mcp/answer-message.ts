import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import { withinTime } from '../within-time.ts'
import { createToolServer } from './tool-server.ts'
import type { ToolServerPorts } from './tool-server.ts'

/** Longer than any call may take: only a fault reaches it. */
const ANSWER_TIMEOUT_MS = 10_000

/**
 * Answers one message of the protocol that came by HTTP, without remembering anything of it.
 *
 * @param request whose headers say what the client takes and which version it speaks
 * @param message the body, parsed; no batch
 * @returns 200 with a JSON-RPC response, 202 for what needs none, 4xx for what is no message of the protocol
 */
export async function answerMessage(
  request: Request,
  message: unknown,
  ports: ToolServerPorts,
): Promise<{ status: number; body: string }> {
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
  const { server } = createToolServer(ports)
  await server.connect(transport)
  try {
    const handled = transport.handleRequest(request, { parsedBody: message })
    // A client that went away is not looked for: what it asked costs the same, and is over soon.
    const never = new AbortController().signal
    const response = await withinTime(handled, ANSWER_TIMEOUT_MS, never)
    return { status: response.status, body: await response.text() }
  } finally {
    await server.close()
  }
}
