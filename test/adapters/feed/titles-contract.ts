import { describe, expect, test } from 'vitest'
import { yearEvent, yearEvents } from '../../support/year-events.ts'
import { DAMAGED } from '../../support/refusals.ts'
import type { FeedOpener } from './open-feed.ts'

const ODD = 'Größe “quoted” \\ 漢字 😀 \u2028 \u0001 \uFEFF'

/** What every engine of the feed promises about verified titles. */
export function titlesContract(name: string, engine: FeedOpener): void {
  describe(`verified titles in ${name}`, () => {
    test('are none before one is kept', async () => {
      const { feed } = await engine.open()
      expect(await feed.verifiedTitles(yearEvents('hn', 3))).toEqual(new Map())
      expect(await feed.verifiedTitles([])).toEqual(new Map())
    })

    test('come back by save key, among the events asked for alone', async () => {
      const { feed, another } = await engine.open()
      await feed.saveVerifiedTitle('hn', '1', { title: ODD, provenance: 'hn:firebase-item' }, 1)
      await feed.saveVerifiedTitle('hn', '2', { title: 'two', provenance: 'hn:firebase-item' }, 2)
      await feed.saveVerifiedTitle(
        'lobsters',
        '1',
        { title: 'lobsters one', provenance: 'lobsters:story-json' },
        3,
      )
      await feed.saveVerifiedTitle(
        'hype:github',
        'owner/name',
        { title: 'repo', provenance: 'hype:github:search' },
        4,
      )
      const asked = [
        yearEvent({ source: 'hn', sourceId: '1' }),
        yearEvent({ source: 'hn', sourceId: '3' }),
        yearEvent({ source: 'lobsters', sourceId: '1' }),
        yearEvent({ source: 'hype:github', sourceId: 'owner/name' }),
      ]
      expect(await another().feed.verifiedTitles(asked)).toEqual(
        new Map([
          ['hn-1', { title: ODD, provenance: 'hn:firebase-item' }],
          ['lobsters-1', { title: 'lobsters one', provenance: 'lobsters:story-json' }],
          ['hype-github-owner/name', { title: 'repo', provenance: 'hype:github:search' }],
        ]),
      )
    })

    test('are replaced when one is verified again', async () => {
      const { feed } = await engine.open()
      await feed.saveVerifiedTitle('hn', '1', { title: 'old', provenance: 'hn:old' }, 1)
      await feed.saveVerifiedTitle('hn', '1', { title: 'new', provenance: 'hn:new' }, 2)
      expect(await feed.verifiedTitles(yearEvents('hn', 1))).toEqual(
        new Map([['hn-1', { title: 'new', provenance: 'hn:new' }]]),
      )
    })

    test('can be asked for by the thousand and kept from several sides at once', async () => {
      const { feed, another } = await engine.open()
      const other = another().feed
      const events = yearEvents('hn', 60)
      await Promise.all(
        events.map(({ sourceId }, index) =>
          (index % 2 === 0 ? feed : other).saveVerifiedTitle(
            'hn',
            sourceId,
            { title: `t${sourceId}`, provenance: 'hn:x' },
            index,
          ),
        ),
      )
      expect((await feed.verifiedTitles(yearEvents('hn', 5_000))).size).toBe(60)
    })

    test('are refused when one is not valid UTF-8', async () => {
      const { feed, raw } = await engine.open()
      await feed.saveVerifiedTitle('hn', '1', { title: 'x', provenance: 'hn:x' }, 1)
      await raw().execute("UPDATE verified_titles SET title = CAST(x'ff' AS TEXT)")
      await expect(feed.verifiedTitles(yearEvents('hn', 1))).rejects.toMatchObject(DAMAGED)
    })
  })

  describe(`the feed store in ${name}`, () => {
    test('is damaged when one of its tables is gone', async () => {
      const { feed, raw } = await engine.open()
      await feed.ping()
      await raw().execute('DROP TABLE verified_titles')
      await expect(feed.ping()).rejects.toMatchObject(DAMAGED)
      await expect(feed.verifiedTitles([])).rejects.toMatchObject(DAMAGED)
    })
  })
}
