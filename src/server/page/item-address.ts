/** Path of the page of one item. */
export const ITEM_PATH = '/item'

/** Address of an item's page. @param key save key */
export function itemHref(key: string): string {
  return `${ITEM_PATH}?${String(new URLSearchParams({ key }))}`
}
