/** A part of an answer; the last one says so. */
interface Part {
  last: boolean
}

/** One reader of an answer. */
export interface AnswerReader<P extends Part> {
  /** True for the one whose question began the answer. */
  leads: boolean
  /** True once the answer goes on for the one that began it alone; this reader gets what came before, and may join again. */
  readonly withdrawn: boolean
  /** The next part as it comes; null once nothing follows, or this reader has left or was sent away. */
  next(): Promise<P | null>
  /** Nothing more is wanted. When the last reader leaves, the making of the answer is stopped at once. */
  leave(): void
  /** Resolves when the answer's making is over, whoever reads it; rejects with what went wrong in it. */
  made: Promise<void>
}

type Begin<P extends Part> = (signal: AbortSignal, withdraw: () => void) => AsyncIterable<P>

/** Answers being made, by what was asked. */
export interface SharedAnswers<P extends Part> {
  /**
   * Reads the answer to a question that is being answered already from its beginning on, or begins one.
   *
   * @param key of everything that shapes the answer; null: never shared
   * @param begin makes the answer; its signal is aborted when nobody reads it any more. It goes on only while a reader
   *   waits for more, and once its last part is there to its end, whoever leaves. `withdraw` ends the offer: no other reader
   *   gets what comes after it
   * @param options offered: whether others may read the answer that is begun; joinableMs: how long they may still join it
   */
  join(
    key: string | null,
    begin: Begin<P>,
    options: { offered: boolean; joinableMs: number },
  ): AnswerReader<P>
}

interface Making<P extends Part> {
  parts: P[]
  readers: number
  /** Ends the offer. */
  forget: () => void
  /** Sends each reader away but the one that began the answer. */
  dismissals: Set<() => void>
  /** Readers that have read everything there is. */
  waiting: Set<() => void>
  /** Calls the making back to work. */
  wanted: (() => void) | null
  /** The last part is there. */
  whole: boolean
  /** The making has returned. */
  over: boolean
  stop: AbortController
  made: Promise<void>
}

/**
 * Identical questions in flight share one answer: each reader gets the whole of it, whenever it came. An answer belongs to
 * none of its readers, so the one that began it may leave. It is made at the pace of its fastest reader.
 */
export function sharedAnswers<P extends Part>(): SharedAnswers<P> {
  const shared = new Map<string, Making<P>>()
  return {
    join(key, begin, { offered, joinableMs }) {
      const running = key === null ? undefined : shared.get(key)
      const making = running ?? start(begin)
      if (key !== null && offered && !running) {
        shared.set(key, making)
        const forget = (): void => {
          if (shared.get(key) === making) shared.delete(key)
        }
        making.forget = forget
        const timer = setTimeout(forget, joinableMs)
        timer.unref()
        making.stop.signal.addEventListener('abort', forget, { once: true })
        void making.made.then(forget, forget).finally(() => clearTimeout(timer))
      }
      return readerOf(making, !running)
    },
  }
}

function start<P extends Part>(begin: Begin<P>): Making<P> {
  const making: Making<P> = {
    parts: [],
    readers: 0,
    forget: () => undefined,
    dismissals: new Set(),
    waiting: new Set(),
    wanted: null,
    whole: false,
    over: false,
    stop: new AbortController(),
    made: Promise.resolve(),
  }
  making.made = make(making, begin).finally(() => {
    making.over = true
    wake(making)
  })
  // A failure reaches every reader; one that has left need not be told.
  making.made.catch(() => undefined)
  return making
}

async function make<P extends Part>(making: Making<P>, begin: Begin<P>): Promise<void> {
  const withdraw = (): void => {
    making.forget()
    for (const dismiss of making.dismissals) dismiss()
  }
  for await (const part of begin(making.stop.signal, withdraw)) {
    making.parts.push(part)
    making.whole = part.last
    wake(making)
    while (!part.last && making.waiting.size === 0 && !making.stop.signal.aborted) {
      await new Promise<void>((resolve) => (making.wanted = resolve))
    }
  }
}

function wake<P extends Part>(making: Making<P>): void {
  for (const resolve of making.waiting) resolve()
  making.waiting.clear()
}

function readerOf<P extends Part>(making: Making<P>, leads: boolean): AnswerReader<P> {
  let read = 0
  /** Parts that this reader gets. */
  let most = Infinity
  let left = false
  let counted = true
  let resume: (() => void) | null = null
  making.readers += 1
  const uncount = (): void => {
    if (!counted) return
    counted = false
    making.dismissals.delete(dismiss)
    if (resume) making.waiting.delete(resume)
    resume?.()
    making.readers -= 1
    if (making.readers > 0 || making.whole) return
    making.stop.abort()
    making.wanted?.()
    making.wanted = null
  }
  const dismiss = (): void => {
    most = making.parts.length
    uncount()
  }
  if (!leads) making.dismissals.add(dismiss)
  return {
    leads,
    get withdrawn() {
      return most < Infinity
    },
    made: making.made,
    async next() {
      for (;;) {
        if (left || read >= most) return null
        const part = making.parts[read]
        if (part) {
          read += 1
          return part
        }
        if (making.over) {
          await making.made
          return null
        }
        await new Promise<void>((resolve) => {
          resume = resolve
          making.waiting.add(resolve)
          making.wanted?.()
          making.wanted = null
        })
      }
    },
    leave() {
      left = true
      uncount()
    },
  }
}
