import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { indexedWords, isPaired, placeWords, tokenize } from '../../../../src/domain/feed/search/tokenize.ts'
import { anyText, wordyText } from '../../../support/any-text.ts'

const text = fc.oneof(anyText({ maxLength: 200 }), wordyText())

describe('the words of a text', () => {
  test.each([
    // Case, diacritics, compatibility forms and letters without a decomposition.
    ['Größe, Café & naïve', 'grosse cafe naive'],
    ['ΟΔΟΣ οδος ὁδός', 'οδοσ οδοσ οδοσ'],
    ['ﬁle Ｆｕｌｌ Ｃ＋＋ 𝐁𝐨𝐥𝐝 ½ H₂O mc²', 'file full c++ bold 1 2 h2o mc2'],
    // Characters that nobody sees, and signs of trade marks.
    ['Arduino™ board® by Foo℠', 'arduino board by foo'],
    // Apostrophes: possessives, elisions, and others inside a word.
    ["Google's Google’s Googleʼs Google＇s Google´s", 'google google google google google'],
    ["Google`s developers' James's 1990's C++'s", 'google developers james 1990 c++'],
    ["L'année d’été qu'il aujourd'hui", 'annee ete il aujourdhui'],
    ["l'intelligenza dell'arte un'altra c'è l'Hospitalet", 'intelligenza arte altra e hospitalet'],
    ['Qur\u02bean Ba\u02bfal \u02bfAl\u012b \u02bdA\u02c8in', 'quran baal ali ain'],
    ["Don't panic — it's O'Reilly, c'mon 'tis", 'dont panic it oreilly cmon tis'],
    // Signs that belong to a word, and signs between words.
    // Numbers.
    [
      "10,000 1,000,000 1\u00a0000 1'000 1_000 3.14 2024,2025 10,000ms",
      '10000 1000000 1000 1000 1000 3 14 2024 2025 10000ms',
    ],
    ['1½ 10⁹ 1️⃣', '1 1 2 10 9 1'],
    ['10× 8×7B 3 × 4', '10x 8x7b 3 4'],
    ['Part①Intro⑪ x⒈ ⓗⓘ №1', 'part 1 intro 11 x 1 hi no 1'],
    ['١٢٣ ۴۲ २०२६ ปี๒๕๖๙ ១២ ١٬٠٠٠', '123 42 2026 ปี 2569 12 1000'],
    // Scripts of pairs.
    ['サーバー ｻｰﾊﾞｰ サーバ ザ サ゛', 'サー ーバ サー ーバ サー ーバ ザ サ'],
    [
      'スター・ウォーズ ｽﾀｰ･ｳｫｰｽﾞ 東京・京都',
      'スタ ター ーウ ウォ ォー ーズ スタ ター ーウ ウォ ォー ーズ 東京 京都',
    ],
    ['サーバー運用 サーバールーム カバー', 'サー ーバ バ運 運用 サー ーバ バー ール ルー ーム カバ バー'],
    // Scripts of a dictionary, and marks that are vowels.
    ['ภาษาไทยกับคอมพิวเตอร์', 'ภาษา ไทย กับ คอมพิวเตอร์'],
    ['การทำงาน การท\u0e4d\u0e32งาน', 'การ ทำงาน การ ทำงาน'],
    ['ພາສາລາວ ភាសា\u200bខ្មែរ', 'ພາສາ ລາວ ភាសា ខ្មែរ'],
    ['ന്\u200d ൻ', 'ന് ന്'],
    ['हिन्दी हिन्\u200dदी हिंदी फ़िल्म माँ', 'हिंदी हिंदी हिंदी फिल्म मां'],
    ['กรุงเทพฯ คนๆ ໆ', 'กรุงเทพ คน'],
    // Letters and marks of Arabic and Hebrew.
    ['مدرسة مدرسه خانهٔ خانۀ ٱلله', 'مدرسه مدرسه خانه خانه الله'],
    ['الذكاء ذكاء الألعاب ألعاب', 'ذكاء ذكاء عاب عاب'],
    ['والذكاء بالعربية وللحاسوب', 'ذكاء عربيه حاسوب'],
    ['הבינה בינה ההר', 'בינה בינה ההר'],
    ['צה״ל צה"ל צה”ל "שלום"', 'צהל צהל צהל שלום'],
    ['x'.repeat(10_000), 'x'.repeat(64)],
  ])('the words of %.60j', (written, words) => {
    expect(tokenize(written)).toEqual(words === '' ? [] : words.split(' '))
  })

  test.each([
    ["Google's l'année don't", 'google annee dont googles lannee'],
    ["O'Reilly's Ankara'da rock'n'roll", 'oreilly ankarada rocknroll oreillys reilly ankara rock roll'],
    ["L'Oréal's D’Artagnan", 'oreal artagnan loreals loreal dartagnan'],
    ['賢い猫 猫', '賢い い猫 猫 賢 い'],
    ['ភាសា\u200bខ្មែរ', 'ភាសា ខ្មែរ ភាសាខ្មែរ'],
    ['ភាសាខ្មែរ မြန်မာနိုင်ငံ', 'ភាសាខ្មែរ မြန်မာနိုင်ငံ ភាសា ខ្មែរ မြန်မာ နိုင်ငံ'],
    ['ការសិក្សា ການຮຽນຮູ້', 'ការសិក្សា ការ សិក្សា ການຮຽນຮູ້ ການ ຮຽນຮູ້ ຮຽນ ຮູ້'],
    ['Node.js U.S. E‑mail TCP/IP', 'node js u s e mail tcp ip nodejs us email tcpip'],
    ['GPT-5.5 3-D $1.5M 2-3x', 'gpt 5 5 3 d 1 5m 2 3x gpt55 gpt5 3d'],
    ['תל־אביב', 'תל אביב תלאביב'],
    ['Next.js-based', 'next js based nextjsbased nextjs jsbased'],
    ['GPT-3.5-turbo v4.0', 'gpt 3 5 turbo 4 0 gpt35turbo gpt35 gpt3 35turbo 5turbo v4 v40'],
    ['الذكاء', 'ذكاء الذكاء'],
    ['Qwen2.5 پایتون۳ mp3 GPT4o', 'qwen 2 5 پايتون3 mp3 gpt4o qwen25 qwen2 پايتون 3 gpt 4o'],
    ['3.5GHz 100µs 4K 21st 7steps', '3 5ghz 100μs 4k 21st 7steps 5 ghz 100 μs 7 steps'],
    ['abc12de v2x Go1.23', 'abc12de v2x go 1 23 go1 go123'],
    ['کتاب\u200cها می\u200cروم', 'كتاب ها مي روم كتابها ميروم'],
    ['Müller-Straße in A\u030arhus', 'muller strasse in arhus mueller aarhus mullerstrasse muellerstrasse'],
    ['plain words', 'plain words'],
  ])('%j is also found by words out of its order', (written, words) => {
    expect(indexedWords(written).sort()).toEqual(words.split(' ').sort())
  })

  test('the words of a text contain no query syntax, and are the words of their own text', () => {
    fc.assert(
      fc.property(text, (written) => {
        const words = tokenize(written)
        const isPlain = (word: string): boolean => /^[\p{L}\p{N}][\p{L}\p{N}\p{M}]*[+#]*$/u.test(word)
        expect(words.filter((word) => !isPlain(word) || !word.isWellFormed())).toEqual([])
        const whole = words.filter((word) => !isPaired(word))
        expect(tokenize(whole.join(' '))).toEqual(whole)
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('the places of words', () => {
  test.each([
    [
      '10² Straße’s ㍿x Ardu\u00adino™ e\u0301a',
      ['10', '²', 'Straße', '㍿', '㍿', '㍿', 'x', 'Ardu\u00adino™', 'e\u0301a'],
    ],
    ["L'année ภาษาไทย", ['année', 'ภาษา', 'ไทย']],
    ['a Qwen2.5 is 2.4GHz', ['a', 'Qwen', '2', '5', 'is', '2', '4', 'GHz']],
  ])('the words of %j stand in the written text', (written, places) => {
    expect(placeWords(written).inOrder.map(({ start, end }) => written.slice(start, end))).toEqual(places)
  })

  test.each([
    ['a Qwen2.5', { qwen2: 'Qwen2', qwen25: 'Qwen2.5', qwen: 'Qwen', 2: '2' }],
    ['a 2.4GHz', { '4ghz': '4GHz', 4: '4', ghz: 'GHz' }],
    ['a Llama3 of 16GB', { llama: 'Llama', 3: '3', 16: '16', gb: 'GB' }],
    ['a Node.js-based', { nodejs: 'Node.js', jsbased: 'js-based', nodejsbased: 'Node.js-based' }],
    ['ខ ភាសា\u200bខ្មែរ', { ភាសាខ្មែរ: 'ភាសា\u200bខ្មែរ' }],
    ['ក ការសិក្សា', { ការ: 'ការ', សិក្សា: 'សិក្សា' }],
  ])('the other words of %j stand in the written text', (written, places) => {
    const { variants } = placeWords(written)
    const found = variants.map(({ word, start, end }) => [word, written.slice(start, end)])
    expect(Object.fromEntries(found)).toEqual(places)
  })

  test('each part of a compound is found once, however many cuts of it have that part', () => {
    const { variants } = placeWords('กกฉฉักกัฉนษกัษกฑษฑษฑฑษ')
    expect(variants.length).toBeGreaterThan(20)
    expect(new Set(variants.map(({ start, end }) => `${start} ${end}`)).size).toBe(variants.length)
  })

  test('the words with places are the words of the text, each in a part of it', () => {
    fc.assert(
      fc.property(text, (written) => {
        const { inOrder, variants } = placeWords(written)
        expect(inOrder.map(({ word }) => word)).toEqual(tokenize(written))
        for (const { start, end } of [...inOrder, ...variants]) {
          expect(start).toBeLessThan(end)
          expect(end).toBeLessThanOrEqual(written.length)
        }
      }),
      { numRuns: 2_000 },
    )
  })
})
