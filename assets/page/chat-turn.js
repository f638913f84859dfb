import { CUT_OFF, failureMessage } from './chat-messages.js'

/**
 * Shows a turn as its events arrive.
 *
 * @param {import('./chat-panel.js').Turn} turn
 * @param {AsyncIterable<import('./chat-stream.js').ChatEvent>} events
 * @param {{ showStatus(text: string): void, onFirstText(): void, onAdmitted(remaining: { session: number, day: number }): Promise<void> }} callbacks
 * @returns {Promise<string>} the error message; empty if the turn succeeded
 * @throws {Error} errors of reading the events
 */
export async function showTurn(turn, events, callbacks) {
  for await (const message of events) {
    switch (message.event) {
      case 'meta':
        await callbacks.onAdmitted(message.data.remaining)
        break
      case 'tool':
        turn.view.tool(message.data.name, message.data.status === 'done', performance.now())
        callbacks.showStatus(
          message.data.status === 'done' ? 'Thinking …' : `Reading: ${message.data.name} …`,
        )
        break
      case 'delta':
        if (turn.answer === '') {
          callbacks.showStatus('Answering …')
          callbacks.onFirstText()
        }
        turn.answer += message.data.text
        turn.view.show(turn.answer)
        break
      case 'done':
        if (message.data.degraded) turn.view.label('degraded: no tools used, the budget is nearly used up')
        if (message.data.cached) turn.view.label('cached answer')
        return ''
      case 'error':
        return failureMessage(message.data)
    }
  }
  return CUT_OFF
}
