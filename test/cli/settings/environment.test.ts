import { describe, expect, test } from 'vitest'
import { parseEnvironment } from '../../../src/cli/settings/environment.ts'

const parsed = (name: string, value: string): unknown =>
  parseEnvironment({ [name]: value }, process.cwd())[name as 'OPENAI_BASE_URL']

describe.each(['DASH_BASE_URL', 'OPENROUTER_BASE_URL', 'OPENAI_BASE_URL'])('%s', (name) => {
  test('is an address without a slash at its end', () => {
    expect(parsed(name, 'https://service.example/v1/')).toBe('https://service.example/v1')
  })

  test.each([
    ['https://a@service.example/v1', 'https://(not shown)@service.example/v1'],
    ['https://service.example/v1?a=b', 'https://service.example/v1?a=(not shown)'],
    ['https://service.example/#v1', 'https://service.example/#v1'],
  ])('is not %s', (value, shown) => {
    const says = `${name}=${JSON.stringify(shown)} must be an address without user, query or fragment`
    expect(() => parsed(name, value)).toThrow(says)
  })

  test('is refused for a password without repeating it', () => {
    const refused = (): unknown => parsed(name, 'https://user:hidden@service.example/v1')
    expect(refused).toThrow(`${name}="https://(not shown)@service.example/v1" must be`)
  })
})
