import { describe, expect, test } from 'vitest'
import { isAllowedOrigin, ownOrigins } from '../../../src/domain/agent/chat-request.ts'

const ALLOWED = ['https://good.example', 'http://localhost:3000']

describe('an origin', () => {
  test.each(ALLOWED)('is allowed exactly as it is listed: %s', (origin) => {
    expect(isAllowedOrigin(origin, ALLOWED)).toBe(true)
  })

  test.each([
    null,
    '',
    'null',
    'https://good.example.evil.example',
    'https://evilgood.example',
    'https://good.example:444',
    'https://good.example:443',
    'http://good.example',
    'https://GOOD.example',
    'HTTPS://good.example',
    'https://good.example.',
    'https://good.example/',
    'https://user@good.example',
    ' https://good.example',
    'https://good.example, https://evil.example',
    'http://localhost:3001',
  ])('is refused in any other form: %s', (origin) => {
    expect(isAllowedOrigin(origin, ALLOWED)).toBe(false)
    expect(isAllowedOrigin(origin, [...ALLOWED, 'null'])).toBe(false)
  })
})

describe("a server's own origins", () => {
  test('are where it is reached from outside, and where it listens', () => {
    expect(ownOrigins('http://192.0.2.1:3000', 'https://dash.example/news')).toEqual([
      'http://192.0.2.1:3000',
      'https://dash.example',
    ])
    expect(ownOrigins('http://192.0.2.1:80', null)).toEqual(['http://192.0.2.1'])
  })

  test.each(['http://127.0.0.1:3000', 'http://localhost:3000', 'http://[::1]:3000', 'http://0.0.0.0:3000'])(
    'are every name of this machine where it listens on %s',
    (listening) => {
      expect(ownOrigins(listening, null)).toEqual([
        'http://localhost:3000',
        'http://127.0.0.1:3000',
        'http://[::1]:3000',
      ])
    },
  )
})
