import { afterAll, beforeAll, onTestFinished } from 'vitest'
import { openObjects } from '../../src/adapters/objects/open.ts'
import { archiveContract } from '../adapters/objects/archive-contract.ts'
import { startS3Server } from '../support/s3-server.ts'
import type { S3Server } from '../support/s3-server.ts'

let server: S3Server
let prefixes = 0

beforeAll(async () => {
  server = await startS3Server()
})

afterAll(() => server.close())

archiveContract('an S3 server', () => {
  prefixes += 1
  const prefix = `of-test-${prefixes}/archive`
  const archive = openObjects(server.location({ prefix }))
  onTestFinished(() => archive.close())
  return Promise.resolve({ archive, plant: (path, bytes) => server.plant(`${prefix}/${path}`, bytes) })
})
