import { z } from 'zod'

/** What the service says of a model's endpoints without asking the model. */
export interface EndpointHealth {
  /** True when at least one endpoint takes requests. */
  usable: boolean
  /** Median of the last half hour at the fastest usable endpoint, in milliseconds; null where it is not told. */
  latencyMs: number | null
}

const endpoint = z.looseObject({
  status: z.number().nullish().catch(null),
  latency_last_30m: z.looseObject({ p50: z.number().nullish() }).nullish().catch(null),
})

const answer = z.looseObject({
  data: z.looseObject({ endpoints: z.array(z.unknown()) }),
})

/**
 * Reads the answer for a model's endpoints.
 *
 * An endpoint is usable while its status is 0; all others are degrees of being taken out.
 *
 * @returns null when the answer has another shape
 */
export function parseEndpoints(body: string): EndpointHealth | null {
  let json: unknown
  try {
    json = JSON.parse(body)
  } catch {
    return null
  }
  const parsed = answer.safeParse(json)
  if (!parsed.success) return null
  const known = parsed.data.data.endpoints.map((each) => endpoint.safeParse(each).data)
  const usable = known.filter((each) => each !== undefined && (each.status ?? 0) === 0)
  const medians = usable.flatMap((each) => each?.latency_last_30m?.p50 ?? []).filter((median) => median >= 0)
  return {
    usable: usable.length > 0,
    latencyMs: medians.length > 0 ? Math.round(Math.min(...medians)) : null,
  }
}
