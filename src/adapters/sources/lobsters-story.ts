import { z } from 'zod'

/** What identifies a story wherever Lobsters answers with one. */
export const lobstersStory = z.object({ short_id: z.string(), title: z.string() })
