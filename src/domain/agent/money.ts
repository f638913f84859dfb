/** Money in millionths of a US dollar: an integer, so that sums are exact (decisions, part 6). */
export type MicroUsd = number
