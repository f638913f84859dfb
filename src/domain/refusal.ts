/**
 * The one error raised on purpose: the product declines, for a reason that is part of its contract.
 *
 * `code` is public and belongs to one area's closed list (see `domain/<area>/refusals.ts`); `detail` is for
 * logs and terminals only and never reaches an HTTP client.
 */
export class Refusal<Code extends string = string> extends Error {
  override readonly name = 'Refusal'
  readonly code: Code
  readonly detail: string | undefined
  /** What the public answer says beside the code. */
  readonly members: Readonly<Record<string, string | number>>

  constructor(
    code: Code,
    detail?: string,
    options?: { cause?: unknown; members?: Readonly<Record<string, string | number>> },
  ) {
    super(detail === undefined ? code : `${code}: ${detail}`, options)
    this.code = code
    this.detail = detail
    this.members = options?.members ?? {}
  }
}
