/** True for an origin of the list exactly as browsers write it; none, `null` and look-alikes are not in it. */
export function isAllowedOrigin(origin: string | null, allowed: readonly string[]): boolean {
  return origin !== null && origin !== 'null' && allowed.includes(origin)
}

/** Hosts that a wildcard or loopback address of a listener is opened by in a browser of the same machine. */
const LOCAL_HOSTS = ['localhost', '127.0.0.1', '[::1]']

const LISTENING_LOCALLY = new Set([...LOCAL_HOSTS, '0.0.0.0', '[::]'])

/**
 * The origins of a server's own pages. Never a word of a request.
 *
 * @param listening where it listens, as a URL
 * @param baseUrl where it is reached from outside; null when that was not told
 */
export function ownOrigins(listening: string, baseUrl: string | null): string[] {
  const { origin, protocol, hostname, port } = new URL(listening)
  const local = LISTENING_LOCALLY.has(hostname)
    ? LOCAL_HOSTS.map((host) => new URL(`${protocol}//${host}:${port}`).origin)
    : [origin]
  return [...new Set([...local, ...(baseUrl === null ? [] : [new URL(baseUrl).origin])])]
}
