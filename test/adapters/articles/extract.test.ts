import { describe, expect, test } from 'vitest'
import { extract } from '../../../src/adapters/articles/extract.ts'
import { plainText } from '../../../src/domain/feed/article.ts'
import { pageHtml } from './pages.ts'

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
  const declaration = (encoding: string): string => `<?xml version="1.0" encoding="${encoding}"?>\n`
  const utf16 = (text: string): Buffer => Buffer.from(text, 'utf16le')
  const PAGE = pageHtml('Größe')

  test.each<[string, Buffer, string?]>([
    ['the header', inBytes(GROESSE, ''), 'text/html; charset=iso-8859-1'],
    ['the header, without a semicolon', inBytes(GROESSE, '<meta charset=koi8-r>'), 'text/html charset=iso-8859-1'],
    ['an XML declaration in UTF-16', utf16(`${declaration('utf-16')}${PAGE}`)],
    ['a meta element that says UTF-16, but is readable', inBytes(GROESSE_UTF8, '<meta charset=utf-16>')],
    ['a meta element, not a description', inBytes(GROESSE_UTF8, `<meta name=description content="charset=latin1">${UTF8}`)],
    ['a meta element against an XML declaration', inBytes(GROESSE_UTF8, UTF8, declaration('latin1'))],
    ['an XML declaration against a meta element in XHTML', inBytes(GROESSE, '<meta charset="utf-8"/>', declaration('latin1')), 'application/xhtml+xml'],
    ['nothing, in windows-1252', inBytes(GROESSE, '')],
    ['a meta element against a wrong header', inBytes(GROESSE, '<meta charset=windows-1252>'), 'text/html; charset=utf-8'],
    ['no one but the bytes, against a wrong header', inBytes(GROESSE_UTF8, ''), 'text/html; charset=iso-8859-1'],
    ['a wrong meta element alone', inBytes(GROESSE, UTF8)],
    ['nothing, in UTF-8 with a broken byte', inBytes(GROESSE_UTF8, '', '<!-- \xe9 -->')],
  ])('the encoding is named by %s', (_what, bytes, contentType) => {
    expect(readPage(bytes, contentType)).toContain('Größe, with')
  }) // prettier-ignore

  test('a page in windows-1251 is decoded', () => {
    const hex = 'cff0e8e2e5f2'
    expect(readPage(inBytes(hex, '<meta charset=windows-1251>'))).toContain('Привет, with')
    expect(readPage(inBytes(hex, ''), 'text/html; charset=windows-1251')).toContain('Привет, with')
  })
})

const P = 'There is enough text here, with commas, that it is taken for an article. '.repeat(3).trim()

describe('the text of a page', () => {
  test('a mention of an element is text', () => {
    const html = `It opens with &lt;script&gt; here. ${P}</p><p>It closes with &lt;/script&gt; there.`
    const text = html.replace('</p><p>', '\n\n').replaceAll('&lt;', '<').replaceAll('&gt;', '>')
    for (const type of ['text/html', 'application/xhtml+xml'])
      expect(readPage(`<html><body><article><p>${P}</p><p>${html}</p></article></body></html>`, type)).toBe(
        `${P}\n\n${text}`,
      )
    expect(readFragment(`<p>${html}</p>`)).toBe(text)
  })

  test('the text is found without the elements that HTML allows to omit', () => {
    expect(readPage(`<title>T</title><p>${P}<p>${P}`)).toBe(`${P}\n\n${P}`)
  })

  test('the text of XHTML is found behind elements without content, and in CDATA sections', () => {
    const html = `<html><head><script src="x"/><title/></head><body><p><a id="a"/>${P}</p><script src='>"'/><iframe/><object data="/x/" /><video src="x"/><dialog/><p>${P} <![CDATA[a < b && <i>]]></p></body></html>`
    expect(readPage(html, 'application/xhtml+xml')).toBe(`${P}\n\n${P} a < b && <i>`)
  })

  test('a formula is written as TeX', () => {
    const wikipedia =
      '<span style="display: none"><math alttext="x^2"></math></span><img class="mwe-math-fallback-image-inline" aria-hidden="true" src="x" alt="x^2">'
    const mathJax = '<span class="mjx-math" aria-label="\\frac12"><span aria-hidden="true">12</span></span>'
    const html = `<html><body><article><p>${P}</p><p>${wikipedia} ${mathJax} ${P}</p></article></body></html>`
    expect(readPage(html)).toBe(`${P}\n\nx^2 \\frac12 ${P}`)
  })

  test.each(['<META NAME="ROBOTS" CONTENT="NOINDEX">', '<meta name=DASH CONTENT=none>'])(
    'a page may forbid storing it in any letter case: %s',
    (meta) => {
      expect(readPage(pageHtml('A page', meta))).toBe('forbidden')
    },
  )
})

test('code on a page keeps its lines and indentation', () => {
  const code = 'def f(x):\n    if x:\n        return "a  b"\n\n    return <T>'
  const html = `<pre><code>${code.replace('<', '&lt;')}\n</code></pre>`
  const body = `<article><p>${P}</p>${html}<p>${P}</p></article>`
  for (const type of ['text/html', 'application/xhtml+xml'])
    expect(readPage(`<html><body>${body}</body></html>`, type)).toBe(`${P}\n\n${code}\n\n${P}`)
})

test('text that a browser does not show is left out', () => {
  const hidden = 'audio video canvas object noembed noframes datalist dialog template textarea'
    .split(' ')
    .map((name) => `<${name}>HIDDEN</${name}>`)
    .join('')
  const html = `<p>a</p>${hidden}<dialog open>b</dialog>`
  expect(readFragment(html)).toBe('a\n\nb')
})

test.each([
  ['<p>a\nb</p>\n\n<pre><code>if x:\n  y\n</code></pre>', 'a b\n\nif x:\n  y'],
  ['<p> a <b> b</b></p> <pre><div>x</div><div>  y</div></pre> <p>c', 'a b\n\nx\n  y\n\nc'],
  ['<pre><code><span>x</span><br>  y</code></pre>', 'x\n  y'],
  ['<ul><li>a</li><li><p>b</p></li></ul>c', '- a\n\n-\n\nb\n\nc'],
  ['<center>a</center><fieldset><legend>b</legend>c</fieldset><xmp>d</xmp>', 'a\n\nb\n\nc\n\nd'],
  ['<math><mi>E</mi><annotation>mc</annotation></math>', 'E'],
  [
    '<math alttext="x^2"><mi>x</mi><mn>2</mn></math> <math><mi>y</mi><annotation encoding="application/x-tex">y_1</annotation></math>',
    'x^2 y_1',
  ],
  ['<span class="mjx-math" aria-label="\\frac12"><span>12</span></span>', '\\frac12'],
  ['a<!-- b -->c <?d e?><![CDATA[ f ]]>g', 'ac g'],
  ['10<sup>-9</sup> 2<sup>nd</sup> note<sup><a>1</a></sup> <sup>[2]</sup>', '10⁻⁹ 2nd note¹ [2]'],
  ['<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>', 'a b\n\nc'],
])('the HTML %j is read as a person reads it', (html, text) => {
  expect(readFragment(html)).toBe(text)
})
