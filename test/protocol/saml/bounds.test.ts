import { heapStats } from 'bun:jsc'
import { describe, expect, test } from 'bun:test'
import { SamlError } from '#src/protocol/saml/error.ts'
import { MESSAGE, scan } from '#src/protocol/saml/scan.ts'
import { LONGEST_HOLD, timed } from '#test/reliability/hold.ts'
import { forgeries } from '#test/support/saml/forgeries.ts'
import { readGenuine } from '#test/support/saml/genuine.ts'
import { encode } from '#test/support/saml/identity-provider.ts'
import { expecting, refusal } from './expecting.ts'

describe('expensive messages', () => {
  const genuine = readGenuine()
  const expected = expecting({ keys: [genuine.certificate.publicKey] })
  const costly = forgeries.filter(({ name }) => /^(S-2[56]|H-0)/.test(name))
  const messages = costly.map(({ name, reason, make }) => ({ name, reason, encoded: encode(make(genuine)) }))

  for (const { name, reason, encoded } of messages)
    test(`${name}: within a second`, async () => {
      const { result, spent } = await timed(async () => refusal(encoded, expected))
      expect(result).toBe(reason)
      expect(spent).toBeLessThan(LONGEST_HOLD)
    })

  test('S-26 memory stays flat', () => {
    const round = () => {
      for (const { encoded } of messages) refusal(encoded, expected)
      Bun.gc(true)
      return heapStats().heapSize
    }
    round()
    const before = round()
    const after = [round(), round(), round()]
    expect(Math.min(...after) - before).toBeLessThan(8 * 1024 * 1024)
  })
})

describe('scan', () => {
  const good = {
    'an element': '<a/>',
    'a declaration and blanks around':
      '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\r\n <a></a>\n',
    'attributes in either quotes': `<a b='"' c="'" d=""/>`,
    'characters by number and name': '<a b="&#x9;">&lt;&gt;&amp;&quot;&apos;&#10;&#x1F600;é\u{1f600}</a>',
    'a default namespace taken back': '<a xmlns="urn:x"><b xmlns=""/></a>',
    'the same prefix for the same namespace': '<a><x:b xmlns:x="urn:x"/><x:c xmlns:x="urn:x"/></a>',
    'H-48 a prefix that is bound again inside': '<a xmlns:b="urn:x"><b:c xmlns:b="urn:y"/><b:c/></a>',
    'xml:lang': '<a xml:lang="en"/>',
  }
  for (const [what, xml] of Object.entries(good))
    test(`accepts ${what}`, () =>
      expect(scan(xml, MESSAGE).xml).toBe(xml.slice(xml.indexOf('<a'), xml.lastIndexOf('>') + 1)))

  const bad = [
    ...[
      '',
      ' ',
      'a',
      '<',
      '<a',
      '<a>',
      '<a/',
      '</a>',
      '</',
      '</>',
      '</1>',
      '<a/></',
      '<a></b>',
      '<a/><b/>',
      '<a/>x',
      'x<a/>',
      '<a></a></a>',
    ],
    ...[
      '<a b/>',
      '<a b=c/>',
      '<a b="<"/>',
      '<a b="1"c="2"/>',
      '<a b="1" b="2"/>',
      '<a b="&x;"/>',
      '<a =""/>',
    ],
    ...['<a>&</a>', '<a>]]></a>', '<a>\0</a>', '<a>\u{fffe}</a>', '<a>&#xFFFF;</a>', '<a>&#11;</a>'],
    ...['\u0085', '\u2028', '\u2029', '&#x85;', '&#8232;', '&#x2029;'].map(end => `<a>${end}</a>`),
    ...['<a xmlns="http://www.w3.org/1999/xhtml"/>', '<a><b xmlns:c="http://www.w3.org/1999/xhtml"/></a>'],
    ...[
      '<!-- --><a/>',
      '<a><!-- --></a>',
      '<a/><!-- -->',
      '<?p?><a/>',
      '<a><![CDATA[]]></a>',
      '<!DOCTYPE a><a/>',
    ],
    ...[
      '<a:b/>',
      '<a b:c=""/>',
      '<:a/>',
      '<a:/>',
      '<a:b:c xmlns:a="urn:x"/>',
      '<1/>',
      '<é/>',
      '< a/>',
      '<a / >',
    ],
    ...['<a xmlns="x"/>', '<a xmlns:b=""/>', '<a xmlns:b="urn:&#120;"/>', '<a xmlns:xml="urn:x"/>'],
    ...['<a xmlnsb="urn:x"/>', '\u{feff}\u{feff}<a/>', '\u00a0<a/>'],
    ...[
      '<?xml version="1.1"?><a/>',
      '<?xml version="1.0" encoding="UTF-16"?><a/>',
      ' <?xml version="1.0"?><a/>',
    ],
  ]
  for (const xml of bad)
    test(`refuses ${JSON.stringify(xml)}`, () => expect(() => scan(xml, MESSAGE)).toThrow(SamlError))
})
