import { z } from 'zod'
import { isHttpUrl } from '../../domain/http-url.ts'

/** Origins as browsers write them (`https://dash.example`, `http://localhost:8080`), comma-separated. */
export const originsSetting = z.string().transform((value, context): readonly string[] => {
  const origins = value.split(',').map((part) => part.trim())
  const bad = origins.filter((origin) => !isHttpUrl(origin) || new URL(origin).origin !== origin)
  if (bad.length > 0) {
    const named = bad.map((origin) => JSON.stringify(origin)).join(', ')
    context.addIssue({
      code: 'custom',
      message: `must be origins as a browser sends them, such as https://dash.example, comma-separated: not ${named}`,
    })
  }
  return origins
})
