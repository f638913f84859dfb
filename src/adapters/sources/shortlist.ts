import type { Dispatcher } from 'undici'
import type { PublishedShortlist } from '../../domain/ports.ts'
import { requestJson } from './json-request.ts'

/**
 * The shortlist of free models that a host serves.
 *
 * @param base absolute http(s) URL without a slash at its end; a path in it comes before those of the interface
 */
export function publishedShortlist(dispatcher: Dispatcher, base: string): PublishedShortlist {
  return {
    topModels: (signal) => requestJson(dispatcher, { url: `${base}/api/free-llm/top-models` }, signal),
  }
}
