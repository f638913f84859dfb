import type { VerifiedTitle } from '../year/rank.ts'

/** The owning sources, asked for one item's own title. */
export interface TitleSource {
  /**
   * The title as the owning source gives it for this very id; one that is longer than an event may have is cut to one
   * character more than that.
   *
   * @throws Refusal `source_unavailable` when the source cannot be reached or does not answer as it should, and
   *   `title_not_vouched` when it answers but cannot vouch: deleted, another id, or an empty title
   */
  title(event: { source: string; sourceId: string }, signal: AbortSignal): Promise<VerifiedTitle>
}

/** Refusals of {@link TitleSource}. */
export type TitleRefusal = 'source_unavailable' | 'title_not_vouched'
