import { z } from 'zod'
import type { MinPoints } from '../../domain/feed/article-plan.ts'
import { isKnownSource } from '../../domain/feed/source.ts'
import { parseIpRange } from '../../domain/ip-address.ts'
import type { IpRange } from '../../domain/ip-address.ts'

/** `<source>=<points>`, comma-separated, each source once (docs/articles.md). */
export const minPointsSetting = z.string().transform((value, context): MinPoints => {
  const points: Record<string, number> = {}
  for (const part of value.split(',')) {
    const [, source = '', least] = /^\s*([^\s=]+)\s*=\s*(\d{1,9})\s*$/.exec(part) ?? []
    if (!isKnownSource(source) || points[source] !== undefined) {
      const message = 'must be <source>=<points>, comma-separated, each source once, as in hn=100,lobsters=20'
      context.addIssue({ code: 'custom', message })
      return z.NEVER
    }
    points[source] = Number(least)
  }
  return points
})

/** Addresses and ranges (CIDR), comma-separated. */
export const addressRangesSetting = z.string().transform((value, context): IpRange[] => {
  const ranges = value.split(',').map((part) => parseIpRange(part.trim()))
  if (ranges.every((range) => range !== null)) return ranges
  const message = 'must be addresses or ranges (CIDR), comma-separated, as in 10.20.0.0/16,fd00::/8'
  context.addIssue({ code: 'custom', message })
  return z.NEVER
})
