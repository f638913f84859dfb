/** Patterns of the refusals of a store or a source. */
export const DAMAGED = { name: 'Refusal', code: 'storage_damaged' }
export const UNAVAILABLE = { name: 'Refusal', code: 'storage_unavailable' }
export const UNREADABLE = { name: 'Refusal', code: 'input_unreadable' }
export const SOURCE_UNAVAILABLE = { name: 'Refusal', code: 'source_unavailable' }
export const NOT_VOUCHED = { name: 'Refusal', code: 'title_not_vouched' }
