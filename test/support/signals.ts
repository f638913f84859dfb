import type { Signal } from '../../src/domain/feed/signal.ts'

/** A signal with every value known, but for what is overridden. */
export function signal(overrides: Partial<Signal> = {}): Signal {
  return {
    source: 'hn',
    sourceId: '1',
    day: '2026-03-01',
    title: 'a title',
    url: 'https://example.org/1',
    points: 10,
    comments: 3,
    publishedAt: Date.UTC(2026, 1, 28, 12),
    titleProvenance: 'hn:firebase-item',
    ...overrides,
  }
}

/** The key of the row a signal is stored in. */
export function tripleOf({ source, sourceId, day }: Signal): string {
  return JSON.stringify([source, sourceId, day])
}
