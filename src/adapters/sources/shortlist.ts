import type { PublishedShortlist } from '../../domain/ports.ts'
import type { SourceClient } from './source-client.ts'

/**
 * The shortlist of free models that a host serves; null when the host has none.
 *
 * @param base absolute http(s) URL without a slash at its end; a path in it comes before those of the interface
 */
export function publishedShortlist(client: SourceClient, base: string): PublishedShortlist {
  return {
    topModels: (signal) =>
      client.ask<unknown>(
        { url: `${base}/api/free-llm/top-models`, absent: null, read: (answer) => answer },
        signal,
      ),
  }
}
