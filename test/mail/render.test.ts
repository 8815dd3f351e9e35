/** Tests the content of mails. */
import { describe, expect, test } from 'bun:test'
import { locales } from '#src/http/locale.ts'
import { renderMail } from '#src/mail/render.ts'
import type { MailKind } from '#src/storage/mail-kinds.ts'
import { mailKinds } from '#test/support/page-samples.ts'

const data = {
  username: 'ada',
  email: 'ada@example.com',
  time: '15 January 2026 at 12:00 UTC',
  device: 'Firefox on Linux',
  place: 'Lisbon',
  factor: 'My phone',
  provider: 'GitHub',
  count: '7',
  webhook: 'Orbit Notes',
}

describe('every mail', () => {
  for (const [kind, has_url] of Object.entries(mailKinds) as [MailKind, boolean][])
    for (const locale of locales)
      test(`${kind} in ${locale}: text and HTML have the same content, with every placeholder filled and escaped`, () => {
        const url = has_url ? 'https://id.example.com/account/x?token=abc&more' : undefined
        const hostile = '"><script>alert(1)</script>'
        const letter = {
          kind,
          locale,
          brand: `Acme ${hostile}`,
          name: `Ada ${hostile}`,
          data,
          ...(url && { url }),
        }
        const { subject, text, html } = renderMail(letter)
        for (const part of [subject, text, html]) {
          expect(part).not.toMatch(/\{\w+\}|undefined|\[object|mail\.\w+/)
          expect(part.length).toBeGreaterThan(10)
        }
        expect(subject).not.toContain('\n')
        expect(html).not.toContain('<script')
        expect(html).toContain('&lt;script&gt;')
        expect(text).toContain(hostile)
        expect(text).not.toContain('&lt;')
        if (url) {
          expect(text).toContain(`\n${url}\n`)
          expect(html).toContain('href="https://id.example.com/account/x?token=abc&amp;more"')
        } else expect(html).not.toContain('href=')
        expect(html).not.toMatch(/src=|url\(|<img/)
      })

  test('carries its looks in its elements, in the accent of the organization, and the dark ones beside them', () => {
    const url = 'https://id.example.com/account/security'
    const letter = { kind: 'new_device', locale: 'en', brand: 'Acme', name: 'Ada', data, url } as const
    const { html } = renderMail({ ...letter, accent: '#ffd400', details: { device: 'Firefox on Linux' } })
    const [head = '', body = ''] = html.split('</style>')
    // Mail programs that drop the document's head show the same mail.
    for (const tag of ['body', 'h1', 'p', 'dl', 'dt', 'dd', 'div class="card"', 'table', 'td class="button"'])
      expect(body).toMatch(new RegExp(`<${tag}[^>]* style="[^"]{9,}"`))
    expect(body).toMatch(/border: 1px solid #a38800;[^"]* background: #ffd400;[^"]*"><a [^>]*color: #000000;/)
    expect(head).toMatch(
      /\.button \{\s*border-color: transparent !important;\s*background: #ffd400 !important;/,
    )
    expect(html).not.toMatch(/--|var\(|undefined/)
  })

  test('keeps the direction of what an Arabic mail tells, also as plain text', () => {
    const letter = { kind: 'new_device', locale: 'ar', brand: 'Acme', name: 'Ada', data } as const
    const { text } = renderMail({ ...letter, details: { place: 'Lisbon (203.0.113.7)' } })
    expect(text).toContain(': \u2068Lisbon (203.0.113.7)\u2069\n')
    expect(
      renderMail({ ...letter, locale: 'de', details: { place: 'Lisbon (203.0.113.7)' } }).text,
    ).toContain(': Lisbon (203.0.113.7)\n')
  })

  test('shows its first sentence in lists; a notice says what to do before its button, and its address last', () => {
    const url = 'https://id.example.com/account/security'
    const letter = { kind: 'new_device', locale: 'en', brand: 'Acme', name: 'Ada', data, url } as const
    const { html, text } = renderMail(letter)
    expect(html).toMatch(
      /<body[^>]*>\s*<div style="display: none;[^"]*">There was a sign-in to your account ada at Acme/,
    )
    const order = ['If it was you', '<table', 'If the button does not work'].map(part => html.indexOf(part))
    expect(order).toEqual([...order].sort((a, b) => a - b))
    expect(order[0]).toBeGreaterThan(0)
    expect(text.indexOf('If it was you')).toBeLessThan(text.indexOf(url))
    const link = renderMail({ ...letter, kind: 'reset_password' })
    expect(link.html.indexOf('<table')).toBeLessThan(link.html.indexOf('If it wasn’t you'))
  })

  test('a line break in a name does not end a header', () => {
    const letter = { kind: 'verify_email', locale: 'en', brand: 'A\r\nBcc: x@y', name: 'Ada', data } as const
    expect(renderMail(letter).subject).not.toMatch(/[\r\n]/)
  })
})
