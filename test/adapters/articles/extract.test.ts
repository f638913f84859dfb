import { describe, expect, test } from 'vitest'
import { extract } from '../../../src/adapters/articles/extract.ts'
import { plainText } from '../../../src/domain/feed/article.ts'
import { pageHtml } from '../../support/pages.ts'

function readPage(bytes: Buffer | string, contentType = 'text/html'): string {
  const extracted = extract({ as: 'page', bytes: Buffer.from(bytes), contentType, token: 'dash' })
  return extracted.kind === 'text' ? plainText(extracted.text) : extracted.kind
}

function readFragment(html: string): string {
  const extracted = extract({ as: 'fragment', html })
  return extracted.kind === 'text' ? plainText(extracted.text) : extracted.kind
}

/** A page whose text begins with a word of given bytes. */
function inBytes(hex: string, head: string, before = ''): Buffer {
  const word = Buffer.from(hex, 'hex').toString('latin1')
  return Buffer.from(`${before}${pageHtml(word, head)}`, 'latin1')
}

describe('the encoding of a page', () => {
  const GROESSE = '4772f6df65'
  const GROESSE_UTF8 = '4772c3b6c39f65'
  const UTF8 = '<meta charset="utf-8">'
  const LATIN1 = '<meta charset="iso-8859-1">'
  const declaration = (encoding: string): string => `<?xml version="1.0" encoding="${encoding}"?>\n`
  const utf16 = (text: string): Buffer => Buffer.from(text, 'utf16le')
  const PAGE = pageHtml('Größe')

  test.each<[string, Buffer, string?]>([
    ['the header', inBytes(GROESSE, ''), 'text/html; charset=iso-8859-1'],
    ['the header, quoted and in capitals', inBytes(GROESSE, ''), 'Text/HTML;Charset="WINDOWS-1252"'],
    ['the header against a meta element', inBytes(GROESSE, UTF8), 'text/html; charset=latin1'],
    ['a byte order mark against the header', Buffer.from(`\uFEFF${PAGE}`), 'text/html; charset=latin1'],
    ['a byte order mark against a meta element', Buffer.from(`\uFEFF${pageHtml('Größe', LATIN1)}`)],
    ['the mark of UTF-16', utf16(`\uFEFF${PAGE}`)],
    ['the other mark of UTF-16', utf16(`\uFEFF${PAGE}`).swap16()],
    ['the header without the mark', utf16(PAGE), 'text/html; charset=utf-16'],
    ['an XML declaration in UTF-16', utf16(`${declaration('utf-16')}${PAGE}`)],
    ['an unknown name in the header', inBytes(GROESSE, LATIN1), 'text/html; charset=klingon'],
    ['a meta element', inBytes(GROESSE, '<META CharSet = latin1>')],
    ['an older meta element', inBytes(GROESSE, '<meta content="text/html; charset=ISO-8859-15" http-equiv=Content-Type>')],
    ['the first meta element that names one', inBytes(GROESSE, `<meta charset=klingon>${LATIN1}${UTF8}`)],
    ['a meta element that says UTF-16, but is readable', inBytes(GROESSE_UTF8, '<meta charset=utf-16>')],
    ['a late meta element', inBytes(GROESSE, `<!-- ${'x'.repeat(1_100)} -->${LATIN1}`)],
    ['a meta element after styles', inBytes(GROESSE, `<style>${'a{b:c}'.repeat(1_000)}</style>${LATIN1}`)],
    ['a meta element, not a description', inBytes(GROESSE_UTF8, `<meta name=description content="charset=latin1">${UTF8}`)],
    ['no meta element, only a description', inBytes(GROESSE_UTF8, '<meta name=description content="a charset">')],
    ['a meta element, not a comment', inBytes(GROESSE_UTF8, `<!-- ${LATIN1} -->${UTF8}`)],
    ['a meta element, not a script', inBytes(GROESSE_UTF8, `<script>'${LATIN1}'</script>${UTF8}`)],
    ['a meta element, not a style', inBytes(GROESSE_UTF8, `<style>/* ${LATIN1} */</style>${UTF8}`)],
    ['a meta element, not a title', inBytes(GROESSE_UTF8, `<title>${LATIN1}</title>${UTF8}`)],
    ['a meta element, not an attribute', inBytes(GROESSE_UTF8, `<link title='${LATIN1}'>${UTF8}`)],
    ['an XML declaration', inBytes(GROESSE, '', declaration('ISO-8859-1'))],
    ['an XML declaration in XHTML', inBytes(GROESSE, '', declaration('ISO-8859-1')), 'application/xhtml+xml'],
    ['a meta element against an XML declaration', inBytes(GROESSE_UTF8, UTF8, declaration('latin1'))],
    ['an XML declaration against a meta element in XHTML', inBytes(GROESSE, '<meta charset="utf-8"/>', declaration('latin1')), 'application/xhtml+xml'],
    ['nothing, in windows-1252', inBytes(GROESSE, '')],
    ['nothing, in UTF-8', inBytes(GROESSE_UTF8, '')],
    ['nothing, in UTF-8 with a broken byte', inBytes(GROESSE_UTF8, '', '<!-- \xe9 -->')],
  ])('the encoding is named by %s', (_what, bytes, contentType) => {
    expect(readPage(bytes, contentType)).toContain('Größe, with')
  }) // prettier-ignore

  test.each([
    ['windows-1252', '“9 €”', '9339208094'],
    ['iso-8859-1', '“9 €”', '9339208094'],
    ['windows-1251', 'Привет', 'cff0e8e2e5f2'],
    ['shift_jis', '日本語', '93fa967b8cea'],
    ['iso-2022-jp', '日本語', '1b2442467c4b5c386c1b2842'],
    ['gb2312', '中文', 'd6d0cec4'],
    ['euc-kr', '한국어 똠', 'c7d1b1b9beee208c63'],
  ])('a page in %s is decoded to %s', (encoding, text, hex) => {
    expect(readPage(inBytes(hex, `<meta charset=${encoding}>`))).toContain(`${text}, with`)
    expect(readPage(inBytes(hex, ''), `text/html; charset=${encoding}`)).toContain(`${text}, with`)
  })
})

const P = 'There is enough text here, with commas, that it is taken for an article. '.repeat(3).trim()

describe('the text of a page', () => {
  test.each([
    ['a script', `It opens with &lt;script&gt; here. ${P}</p><p>It closes with &lt;/script&gt; there.`],
    ['a style', `It opens with &lt;style&gt; here. ${P}</p><p>It closes with &lt;/style&gt; there.`],
    ['a comment', `It starts with &lt;!-- here. ${P}</p><p>while (n --&gt; 0)`],
    [
      'elements',
      'Task&lt;object&gt; is not Task&lt;T&gt;; the &lt;b&gt;, &lt;div&gt; and &lt;video&gt; tags.',
    ],
    ['escapes', 'Write &amp;lt;script&amp;gt; for it, and &amp;amp;lt; for that.'],
    ['unfinished elements', 'a &lt;img src=x onerror=y, b &lt;/ c &lt;!'],
    ['other elements', '&lt;textarea&gt; &lt;title&gt; &lt;plaintext&gt; &lt;noscript&gt; &lt;template&gt;'],
  ])('a mention of %s is text', (_what, html) => {
    const text = html
      .replaceAll('</p><p>', '\n\n')
      .replaceAll('&lt;', '<')
      .replaceAll('&gt;', '>')
      .replaceAll('&amp;', '&')
    for (const type of ['text/html', 'application/xhtml+xml'])
      expect(
        readPage(`<html><body><article><p>${P}</p><p>${html}</p><p>${P}</p></article></body></html>`, type),
      ).toBe(`${P}\n\n${text}\n\n${P}`)
    expect(readFragment(`<p>${html}</p>`)).toBe(text)
  })

  test.each([
    ['without the elements that HTML allows to omit', `<title>T</title><p>${P}<p>${P}`],
    ['with a mention of them in a comment', `<!-- <html><body> --><p>${P}<p>${P}`],
    ['after the end', `<html><body><p>${P}</body></html><p>${P}`],
    ['after comments with odd ends', `<body><!--><p>${P}<!-- x --!><p>${P}<!-- -->`],
    ['in capitals', `<HTML><BODY><P>${P}</P><P>${P}</P></BODY></HTML>`],
  ])('the text is found %s', (_what, html) => {
    expect(readPage(html)).toBe(`${P}\n\n${P}`)
  })

  test('the text of XHTML is found behind elements without content, and in CDATA sections', () => {
    const html = `<html><head><script src="x"/><title/></head><body><p><a id="a"/>${P}</p><p>${P} <![CDATA[a < b && <i>]]></p></body></html>`
    expect(readPage(html, 'application/xhtml+xml')).toBe(`${P}\n\n${P} a < b && <i>`)
  })

  test.each([
    '<META NAME="ROBOTS" CONTENT="NOINDEX">',
    '<Meta Content="NoArchive" Name="Robots">',
    '<meta name=DASH CONTENT=none>',
  ])('a page may forbid storing it in any letter case: %s', (meta) => {
    expect(readPage(pageHtml('A page', meta))).toBe('forbidden')
  })
})

test('code on a page keeps its lines and indentation', () => {
  const code = 'def f(x):\n    if x:\n        return "a  b"\n\n    return <T>'
  const html = `<pre><code>${code.replace('<', '&lt;')}\n</code></pre>`
  const body = `<article><p>${P}</p>${html}<p>${P}</p></article>`
  for (const type of ['text/html', 'application/xhtml+xml'])
    expect(readPage(`<html><body>${body}</body></html>`, type)).toBe(`${P}\n\n${code}\n\n${P}`)
})

test.each([
  ['one<p>two<p>three', 'one\n\ntwo\n\nthree'],
  ['a <i>b</i> <a href="https:&#x2F;&#x2F;x.org">c&#x27;d</a> &lt;e&gt;', "a b c'd <e>"],
  ['<p>a\nb</p>\n\n<pre><code>if x:\n  y\n</code></pre>', 'a b\n\nif x:\n  y'],
  ['<pre>  a  "b  c"\n\td\n</pre>', '  a  "b  c"\n\td'],
  ['<p> a <b> b</b></p> <pre><div>x</div><div>  y</div></pre> <p>c', 'a b\n\nx\n  y\n\nc'],
  ['<pre><code><span>x</span><br>  y</code></pre>', 'x\n  y'],
  ['<table><tr><td><pre>1\n2</pre></td><td><pre>a\n  b</pre></td></tr></table>', '1\n2\n\na\n  b'],
  ['<ul><li>a</li><li><p>b</p></li></ul>c', '- a\n\n-\n\nb\n\nc'],
  ['a<br>b<br/>c', 'a\nb\nc'],
  ['<script>x</script><style>y</style>z<!-- w -->', 'z'],
  ['<math><mi>E</mi><annotation>mc</annotation></math>', 'E'],
  ['<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>', 'a b\n\nc'],
  ['', ''],
])('the HTML %j is read as a person reads it', (html, text) => {
  expect(readFragment(html)).toBe(text)
})
