import { z } from 'zod'
import { SHA256_HEX } from './digest.ts'

/** Fields that several wire formats have (docs/api.md). */

/** ISO-8601 with milliseconds and Z. */
export const instantField = z.iso.datetime({ precision: 3 })
export const dayField = z.iso.date()
export const countField = z.int().min(0)
/** Position of an entry in its ledger, from 1. */
export const seqField = z.int().min(1)
export const digestField = z.string().regex(SHA256_HEX)
