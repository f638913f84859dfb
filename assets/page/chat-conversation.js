/** @typedef {{ key: string, title: string }} Item */
/** @typedef {{ item: Item | null, question: string, answer: string, view: import('./chat-view.js').TurnView }} Turn */

/** The turns of this page's conversation and the item of the next one. It lives as long as the page. */
export function conversation() {
  /** @type {Turn[]} */
  let turns = []
  /** @type {Item | null} */
  let item = null

  return {
    /** The item of the next turn; null for the whole site. */
    item: () => item,
    isEmpty: () => turns.length === 0,
    last: () => turns.at(-1),
    /** @param {Turn} turn */
    has: (turn) => turns.includes(turn),
    /** @param {Turn} turn */
    add(turn) {
      turns.push(turn)
    },
    /**
     * @param {Turn} old
     * @param {Turn} turn
     */
    replace(old, turn) {
      turns = turns.map((each) => (each === old ? turn : each))
    },
    clear() {
      turns = []
    },
    /**
     * @param {Item | null} next
     * @returns {boolean} whether the item changed
     */
    setItem(next) {
      if (next?.key === item?.key) return false
      item = next
      return true
    },
    /**
     * Answered turns about the current item.
     *
     * @param {Turn | null} excluded
     */
    answered: (excluded) =>
      turns.filter((turn) => turn !== excluded && turn.answer !== '' && turn.item?.key === item?.key),
  }
}
