import { localSource } from './local-source.ts'

/** A bucket in the test's own memory, with faults at will. */
export interface MemoryBucket {
  /** The variables that make it the object store. */
  env: Record<string, string>
  keys: () => string[]
  /** Refuses requests of a method whose path and query match; null: none any more. */
  refuse(method: 'GET' | 'PUT' | null, target?: RegExp): void
  /** Whether it honours `If-None-Match: *`, as an archive needs it. */
  keepsObjects: boolean
}

export async function memoryBucket(): Promise<MemoryBucket> {
  const objects = new Map<string, string>()
  let refused: { method: string | null; target: RegExp } = { method: null, target: /./ }
  const { url } = await localSource(({ method, target, headers, body }, response) => {
    const { pathname, searchParams } = new URL(target, 'http://bucket')
    const key = decodeURIComponent(pathname.replace('/bucket/', ''))
    if (method === refused.method && refused.target.test(target)) {
      response.writeHead(403).end('<Error><Code>AccessDenied</Code></Error>')
    } else if (searchParams.has('list-type')) {
      response.end(
        listing([...objects.keys()].filter((one) => one.startsWith(searchParams.get('prefix') ?? ''))),
      )
    } else if (method === 'PUT') {
      const isKept = bucket.keepsObjects && headers['if-none-match'] === '*' && objects.has(key)
      if (!isKept) objects.set(key, body)
      response.writeHead(isKept ? 412 : 200)
      response.end(isKept ? '<Error><Code>PreconditionFailed</Code></Error>' : '')
    } else {
      const object = objects.get(key)
      response.writeHead(object === undefined ? 404 : 200)
      response.end(object ?? '<Error><Code>NoSuchKey</Code></Error>')
    }
  })
  const bucket: MemoryBucket = {
    env: {
      DASH_STORE_URL: `s3://bucket?endpoint=${url}&region=r`,
      AWS_ACCESS_KEY_ID: 'id',
      AWS_SECRET_ACCESS_KEY: 'secret',
    },
    keys: () => [...objects.keys()],
    refuse: (method, target = /./) => void (refused = { method, target }),
    keepsObjects: true,
  }
  return bucket
}

function listing(keys: readonly string[]): string {
  const contents = keys.map((key) => `<Contents><Key>${encodeURIComponent(key)}</Key></Contents>`).join('')
  const end = '<IsTruncated>false</IsTruncated><EncodingType>url</EncodingType>'
  return `<ListBucketResult>${contents}${end}</ListBucketResult>`
}
