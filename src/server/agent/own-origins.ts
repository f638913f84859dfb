/**
 * The server's own origins, whose pages may chat without being named: of the address it is reached at from outside, and
 * of the address it listens on. What a request says of itself is never among them.
 *
 * @param baseUrl address from outside, null when it was not given
 * @param listening `http://host:port`; a loopback or wildcard host stands for every name of this machine's loopback
 */
export function ownOrigins(baseUrl: string | null, listening: string): ReadonlySet<string> {
  const origins = baseUrl === null ? [] : [new URL(baseUrl).origin]
  const { hostname, port } = new URL(listening)
  const names = isLocal(hostname) ? ['localhost', '127.0.0.1', '[::1]', hostname] : [hostname]
  // A URL leaves out the port that goes without saying, as a browser does.
  const listened = names.map((name) => new URL(`http://${name}:${port || '80'}`).origin)
  return new Set([...origins, ...listened])
}

function isLocal(hostname: string): boolean {
  return ['localhost', '[::1]', '0.0.0.0', '[::]'].includes(hostname) || hostname.startsWith('127.')
}
