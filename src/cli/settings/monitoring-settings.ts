import { isIP } from 'node:net'
import { z } from 'zod'
import { isHttpUrl } from '../../domain/http-url.ts'

/** Where a listener listens. */
export interface ListenAddress {
  host: string
  /** 0 takes a free port. */
  port: number
}

const ADDRESS = /^(?:\[([\da-f:.]+)\]|([\w.-]+)):(\d{1,5})$/i

/** `HOST:PORT`; an IPv6 address stands in brackets. */
export const listenAddressSetting = z.string().transform((value, context): ListenAddress => {
  const [, bracketed, plain = '', digits] = ADDRESS.exec(value) ?? []
  const host = bracketed ?? plain
  const port = Number(digits)
  if (host !== '' && port <= 65_535 && (bracketed === undefined || isIP(bracketed) === 6))
    return { host, port }
  context.addIssue({
    code: 'custom',
    message: 'must be HOST:PORT, as in 127.0.0.1:9464 or [::1]:9464',
  })
  return z.NEVER
})

/** Address of a check; `{job}` stands for the job. */
export const pingUrlSetting = z
  .string()
  .refine(
    (value) => isHttpUrl(value) && !/[#@]/.test(value),
    'must be an absolute http(s) URL without user or fragment; {job} in it stands for the name of the job',
  )
