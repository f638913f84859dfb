import { CUT_OFF, failureOf } from './chat-words.js'

/**
 * Shows a turn as its events arrive.
 *
 * @param {import('./chat-conversation.js').Turn} turn
 * @param {AsyncIterable<import('./chat-stream.js').ChatEvent>} events
 * @param {{ say(text: string): void, begun(): void, admitted(remaining: { session: number, day: number }): Promise<void> }} to
 * @returns {Promise<string>} what went wrong, in words; empty for nothing
 * @throws {Error} what reading the events throws
 */
export async function showTurn(turn, events, to) {
  for await (const message of events) {
    switch (message.event) {
      case 'meta':
        await to.admitted(message.data.remaining)
        break
      case 'tool':
        turn.view.tool(message.data.name, message.data.status === 'done', performance.now())
        to.say(message.data.status === 'done' ? 'Thinking …' : `Reading: ${message.data.name} …`)
        break
      case 'delta':
        if (turn.answer === '') {
          to.say('Answering …')
          to.begun()
        }
        turn.answer += message.data.text
        turn.view.show(turn.answer)
        break
      case 'done':
        if (message.data.degraded) turn.view.label('degraded: no tools used, the budget is nearly used up')
        if (message.data.cached) turn.view.label('cached answer')
        return ''
      case 'error':
        return failureOf(message.data)
    }
  }
  return CUT_OFF
}
