/** What `/readyz` told of a server. */
export interface Readiness {
  ready: boolean
  /** null for whatever else answered. */
  status: 'ready' | 'unavailable' | 'draining' | null
  /** As a person would say it, after the address. */
  words: string
}

/** The judgement of an answer of `/readyz`; only a server of ours that says so is ready. */
export function readinessOf({ status: code, body }: { status: number; body: string }): Readiness {
  const status = statusIn(body)
  if (code === 200 && status === 'ready') return { ready: true, status, words: 'is ready' }
  const words = status === null ? `answers ${code}, as no server of dash does` : `says that it is ${status}`
  return { ready: false, status, words }
}

function statusIn(body: string): Readiness['status'] {
  try {
    const parsed: unknown = JSON.parse(body)
    if (typeof parsed !== 'object' || parsed === null || !('status' in parsed)) return null
    return (['ready', 'unavailable', 'draining'] as const).find((status) => status === parsed.status) ?? null
  } catch {
    return null
  }
}
