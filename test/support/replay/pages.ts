import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Where the replayed items link to. */
export const LINKED = 'https://example.org'

/** Serves an article at every path, and no robots.txt; returns the origin. */
export async function startPages(): Promise<string> {
  const server = createServer(({ url = '/' }, response) => {
    if (url === '/robots.txt') response.writeHead(404).end()
    else response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(articleOf(url))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function articleOf(path: string): string {
  const name = path.replaceAll(/[^\w/-]/g, '')
  const paragraph = (number: number): string =>
    `<p>Paragraph ${number} of the article at ${name}. It is long enough to be told from what stands around an
     article, and says nothing but where it was found, so that a text can be followed to its page.</p>`
  const paragraphs = Array.from({ length: 5 }, (_, index) => paragraph(index + 1)).join('')
  return `<!doctype html><title>${name}</title><nav><a href="/">Home</a></nav>
    <article><h1>${name}</h1>${paragraphs}</article><footer>Footer</footer>`
}
