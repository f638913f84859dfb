import { getEventListeners } from 'node:events'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { orStopped, stopAfter } from '../../../src/server/agent/event-stream.ts'

const TIME_MS = 1_000

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
})

describe('a stop', () => {
  test('ends with its time, and says that it was the time', () => {
    const stop = stopAfter(TIME_MS)
    vi.advanceTimersByTime(TIME_MS - 1)
    expect([stop.signal.aborted, stop.timedOut]).toEqual([false, false])
    vi.advanceTimersByTime(1)
    expect([stop.signal.aborted, stop.timedOut]).toEqual([true, true])
  })

  test('ends before its time when the server stops, and is out of time then', () => {
    const stop = stopAfter(TIME_MS)
    stop.expire()
    expect([stop.signal.aborted, stop.timedOut, stop.cutShort]).toEqual([true, true, true])
  })

  test('ends with the signal behind it, or by hand, and then it was not the time', () => {
    const behind = new AbortController()
    const [followed, byHand] = [stopAfter(TIME_MS, behind.signal), stopAfter(TIME_MS)]
    behind.abort()
    byHand.abort()
    vi.advanceTimersByTime(TIME_MS)
    for (const stop of [followed, byHand, stopAfter(TIME_MS, behind.signal)]) {
      expect([stop.signal.aborted, stop.timedOut]).toEqual([true, false])
    }
  })

  test('that is cancelled follows neither its time nor the signal behind it, and leaves nothing there', () => {
    const behind = new AbortController()
    const stop = stopAfter(TIME_MS, behind.signal)
    expect(getEventListeners(behind.signal, 'abort')).toHaveLength(1)
    stop.cancel()
    expect(getEventListeners(behind.signal, 'abort')).toHaveLength(0)
    expect(vi.getTimerCount()).toBe(0)
    vi.advanceTimersByTime(TIME_MS)
    behind.abort()
    expect([stop.signal.aborted, stop.timedOut]).toEqual([false, false])
    stop.abort()
    expect([stop.signal.aborted, stop.timedOut]).toEqual([true, false])
  })
})

test('who waits for a promise or a stop gets the first of them, and leaves nothing at the signal', async () => {
  const stop = stopAfter(TIME_MS)
  expect(await orStopped(Promise.resolve('come'), stop.signal)).toBe('come')
  expect(getEventListeners(stop.signal, 'abort')).toHaveLength(0)
  const waiting = orStopped(new Promise(() => undefined), stop.signal)
  vi.advanceTimersByTime(TIME_MS)
  await expect(waiting).rejects.toBe(stop.signal.reason)
  await expect(orStopped(new Promise(() => undefined), stop.signal)).rejects.toBe(stop.signal.reason)
})
