import { describe, expect, test } from 'bun:test'
import { chooseLocale, direction, locales } from '#src/http/locale.ts'
import { embed } from '#src/lib/embed.ts'
import { asset } from '#src/pages/assets.ts'
import type { MessageCode, Pages } from '#src/pages/data.ts'
import { render } from '#src/pages/render.ts'
import { hasMessage, translator } from '#src/pages/translate.ts'
import { initials, isPowerful, tone, viewTools } from '#src/pages/view.ts'
import { host } from '#src/protocol/oauth/redirect-uri.ts'
import { type Sample, samples } from '#test/support/page-samples.ts'
import en from '../../templates/locales/en.json'

const nameOf = ({ page, state }: Sample) => `${page}.${state}`
const show = ({ page, data, status = 200 }: Sample) => render(page, data, { status })
const find = (name: string): Sample => {
  const found = samples.find(sample => nameOf(sample) === name)
  if (!found) throw new Error(`no sample ${name}`)
  return found
}

interface Element {
  tag: string
  attributes: Record<string, string>
}

/** Returns the page without its footer, which has the form that chooses a language. */
const ownPart = (html: string) => html.split('<footer>')[0] ?? ''

const elementsOf = async (html: string): Promise<Element[]> => {
  const elements: Element[] = []
  const rewriter = new HTMLRewriter().on('*', {
    element: ({ tagName, attributes }) => {
      elements.push({ tag: tagName, attributes: Object.fromEntries(attributes) })
    },
  })
  await rewriter.transform(new Response(html)).text()
  return elements
}

const inputsOf = async (html: string) =>
  (await elementsOf(html)).filter(({ tag }) => tag === 'input').map(({ attributes }) => attributes)

const hiddenOf = async (html: string) =>
  Object.fromEntries(
    (await inputsOf(html)).filter(input => input.type === 'hidden').map(input => [input.name, input.value]),
  )

/** Members whose values the server chooses. */
const OWN_VALUES = 'code rule reason notice kind type method last_active_at created_at until deletion'

/** Replaces each text that a user or an administrator could have chosen. */
const poison = (value: unknown, text: string, key = ''): unknown => {
  if (OWN_VALUES.split(' ').includes(key)) return value
  if (key === 'errors') return value
  if (typeof value === 'string') return text
  if (Array.isArray(value)) return value.map(item => poison(item, text))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, poison(item, text, name)]))
}

describe('every page', () => {
  for (const sample of samples) {
    const { page, data, status = 200 } = sample
    test(`${nameOf(sample)}: renders completely, is accessible, and has nothing inline or from another origin`, async () => {
      const response = show(sample)
      expect(response.status).toBe(status)
      const html = await response.text()
      const elements = await elementsOf(html)
      const count = (tag: string) => elements.filter(element => element.tag === tag).length

      expect(html).toStartWith('<!doctype html>\n<html lang="en" dir="ltr">')
      expect([count('h1'), count('main'), count('title'), count('style')]).toEqual([1, 1, 1, 0])
      expect(html).not.toMatch(/undefined|\[object|NaN|\{\w+\}/)

      for (const { tag, attributes } of elements) {
        expect(Object.keys(attributes).filter(name => name === 'style' || name.startsWith('on'))).toEqual([])
        if (['script', 'link', 'img'].includes(tag)) {
          const url = attributes.src ?? attributes.href ?? ''
          if (tag === 'img' || (attributes.rel === 'icon' && 'logo' in data.brand))
            expect(url).toStartWith('/assets/')
          else expect(asset(url)?.status).toBe(200)
        }
      }
      expect(count('script')).toBe(1)
      expect(html).toMatch(/<script src="[^"]+" defer><\/script>/)

      const ids = elements.flatMap(({ attributes }) => attributes.id ?? [])
      expect(new Set(ids).size).toBe(ids.length)
      const named = ['aria-describedby', 'aria-labelledby', 'aria-controls', 'for']
      const wanted = elements.flatMap(({ attributes }) =>
        named.flatMap(name => attributes[name]?.split(' ') ?? []),
      )
      expect(wanted.filter(id => !ids.includes(id))).toEqual([])

      const labelled = elements.flatMap(({ tag, attributes }) =>
        tag === 'label' ? (attributes.for ?? []) : [],
      )
      for (const input of await inputsOf(html)) {
        if (input.type === 'hidden' || input['aria-hidden']) continue
        expect(labelled).toContain(input.id ?? '')
        expect(input.autocomplete).toBeString()
        if (input.type === 'password') expect(input.value).toBeUndefined()
      }
      expect(elements.filter(({ attributes }) => 'autofocus' in attributes).length).toBeLessThan(2)
    })

    test(`${nameOf(sample)}: escapes every text`, async () => {
      const hostile = `"'><script>alert(1)</script><img src=x onerror=alert(1)>`
      const html = await render(page, poison(data, hostile) as Pages[typeof page], { status }).text()
      const elements = await elementsOf(html)
      expect(html).toContain('&lt;script&gt;')
      expect(elements.filter(({ tag }) => tag === 'script').length).toBe(1)
      expect(elements.filter(({ attributes }) => 'onerror' in attributes)).toEqual([])
    })

    test(`O-27 ${nameOf(sample)}: headers`, async () => {
      const response = show(sample)
      const has_form = (await response.clone().text()).includes('<form')
      const isolated = page.startsWith('account') || ['set-up', 'invitation', 'signed-in'].includes(page)
      expect(Object.fromEntries(response.headers.entries())).toEqual({
        'content-type': 'text/html; charset=utf-8',
        'content-language': 'en',
        'content-security-policy':
          "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; font-src 'self'; " +
          "base-uri 'none'; frame-ancestors 'none'",
        'x-frame-options': 'DENY',
        'referrer-policy': has_form && page !== 'form-post' ? 'same-origin' : 'no-referrer',
        'cache-control': 'no-store',
        pragma: 'no-cache',
        'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
        ...(isolated && { 'cross-origin-opener-policy': 'same-origin' }),
      })
      expect(has_form).toBe(!['sent', 'done'].includes(sample.state))
    })
  }

  test('passes on the headers of its caller', () => {
    const { page, data } = find('error.throttled')
    const response = render(page, data, { status: 429, headers: { 'retry-after': '60' } })
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '60'])
  })
})

describe('forms', () => {
  test('login posts exactly its fields, with the attributes that password managers need', async () => {
    const html = await show(find('login.providers')).text()
    expect(html).toContain('<form method="post" action="/oauth/login">')
    expect(await hiddenOf(ownPart(html))).toEqual({ request: 'request-8Qx', csrf_token: 'csrf-3Vb' })
    const visible = (await inputsOf(html)).filter(({ type }) => type !== 'hidden')
    expect(visible.map(({ name, autocomplete, value }) => [name, autocomplete, value])).toEqual([
      ['username', 'username', 'ada@northwind.example'],
      ['password', 'current-password', undefined],
    ])
    expect(html).toContain(
      '<a class="button secondary" href="/oauth/social/google" aria-label="Continue with Google">',
    )
  })

  test('consent posts back exactly the request and the decision', async () => {
    const sample = find('consent.usual')
    const html = ownPart(await show(sample).text())
    expect(await hiddenOf(html)).toEqual((sample.data as Pages['consent']).fields)
    const with_nonce = {
      ...(sample.data as Pages['consent']),
      fields: { ...(sample.data as Pages['consent']).fields, state: '', nonce: 'n-0S6' },
    }
    const other = ownPart(await render('consent', with_nonce).text())
    expect(await hiddenOf(other)).toEqual(with_nonce.fields)
    const decisions = (await elementsOf(html))
      .filter(({ tag }) => tag === 'button')
      .map(({ attributes }) => [attributes.name, attributes.value])
    expect(decisions).toEqual([
      ['decision', 'deny'],
      ['decision', 'approve'],
    ])
    expect(html).toContain('You will be sent to notes.orbit.example.')
  })

  test('consent warns of administrative rights, and of no others', async () => {
    expect(await show(find('consent.powerful')).text()).toContain('administrative rights')
    expect(await show(find('consent.usual')).text()).not.toContain('administrative rights')
  })

  test('the account picker answers with the login or with "other"', async () => {
    const elements = await elementsOf(await show(find('select-account.three')).text())
    const values = elements.flatMap(({ attributes }) =>
      attributes.name === 'login' ? [attributes.value] : [],
    )
    expect(values).toEqual(['login-1', 'login-2', 'login-3', 'other'])
  })

  test('a refused form keeps its input, announces the error to assistive technology, and never repeats a secret', async () => {
    const html = await show(find('set-up.refused')).text()
    const inputs = await inputsOf(html)
    const values = Object.fromEntries(inputs.map(({ name, value }) => [name, value]))
    expect(values).toMatchObject({ username: 'a', email: 'ada@', first_name: 'Ada', last_name: '' })
    expect(values.password).toBeUndefined()
    const marked = inputs.filter(input => input['aria-invalid'] === 'true').map(({ name }) => name)
    expect(marked).toEqual(['last_name', 'username', 'email', 'password'])
    expect(html).toContain('role="alert"')
    expect(html).toContain('<title>Error: Create the first administrator · Gatehouse</title>')
    expect(html.match(/<li [^>]*class="failed">/g)?.length).toBe(2)
  })

  test('removing a factor or the codes takes a confirmation that states the consequences', async () => {
    const html = await show(find('account-security.usual')).text()
    const step = /<details\b[\s\S]*?<\/details>/g
    const said = (action: string) => html.match(step)?.find(text => text.includes(action))
    expect(said('/account/security/remove')).toContain('You will be signed out everywhere else.')
    expect(said('/account/security/codes')).toContain('saved or printed stop working')
    // Two forms need no confirmation. A browser that is forgotten only needs the second factor at its next
    // login. Codes by mail can be turned on again.
    const rest = html.replace(step, '').replaceAll(/\/account\/security\/(forget|email-code)/g, '')
    expect(rest).not.toContain('action="/account/security/')
  })

  test('a factor named like its kind is labelled once', async () => {
    const html = await show(find('account-security.usual')).text()
    expect(html.match(/>Authenticator app</g)).toHaveLength(1)
    expect(html).toContain('<span class="part">Passkey</span>')
  })

  test('every session can be signed out on its own', async () => {
    const elements = await elementsOf(await show(find('account.usual')).text())
    const ids = elements.flatMap(({ attributes }) =>
      attributes.name === 'session_id' ? [attributes.value] : [],
    )
    expect(ids).toEqual(['sess_1', 'sess_5', 'sess_2', 'sess_3', 'sess_4'])
  })
})

describe('texts', () => {
  const templates = embed('templates', ['.eta'])
  const code = ['src/http', 'src/mail', 'src/pages'].flatMap(folder => Object.values(embed(folder, ['.ts'])))
  const sources = [...code, ...Object.values(templates)].join('\n')
  const written = [...sources.matchAll(/\bt\(\s*(['`])([\w.${}?:' -]+?)\1/g)].map(([, , key = '']) => key)
  const patterns = [...sources.matchAll(/`([a-z-]+\.[^`]*\$\{[^`]*)`/g)].map(([, key = '']) => key)
  const matches = (pattern: string, key: string) =>
    new RegExp(`^${pattern.replaceAll('.', '\\.').replace(/\$\{[^}]*\}/g, '[\\w:-]+')}$`).test(key)

  test('every key in use exists', () => {
    expect(written.length).toBeGreaterThan(60)
    expect(written.filter(key => !key.includes('$') && !hasMessage(key))).toEqual([])
    expect(patterns.filter(pattern => !Object.keys(en).some(key => matches(pattern, key)))).toEqual([])
  })

  test('every key is in use', () => {
    const unused = Object.keys(en).filter(
      key => !sources.includes(`'${key}'`) && !patterns.some(pattern => matches(pattern, key)),
    )
    expect(unused).toEqual([])
  })

  test('no template contains visible text of its own', () => {
    for (const [path, text] of Object.entries(templates)) {
      const words = text
        .replace(/<%[\s\S]*?%>/g, '')
        .replace(/<[^>]*>/g, '')
        .replace(/[·():\s]/g, '')
      expect([path, words]).toEqual([path, ''])
    }
  })

  const codes = <Prefix extends string, Suffix extends string = ''>(prefix: Prefix, suffix: string = '') =>
    Object.keys(en)
      .filter(key => key.startsWith(prefix) && key.endsWith(suffix))
      .map(key => key.slice(prefix.length, key.length - suffix.length) as MessageCode<Prefix, Suffix>)

  test('every error code of every page has its text, with all placeholders filled', async () => {
    const brand = { name: 'Northwind Labs' }
    const login = find('login.empty').data as Pages['login']
    const change = find('change-password.chosen').data as Pages['change-password']
    const pages = [
      ...codes('login.error.').map(code => render('login', { ...login, error: { code, seconds: 1 } })),
      ...codes('change-password.error.').map(code =>
        render('change-password', { ...change, error: { code, seconds: 2 } }),
      ),
      ...codes('change-password.reason.').map(reason => render('change-password', { ...change, reason })),
      ...codes<'error.', '.title'>('error.', '.title').map(code =>
        render('error', { brand, code, seconds: 3 }),
      ),
      ...codes('account.notice.').map(notice =>
        render('account', { ...(find('account.usual').data as Pages['account']), notice }),
      ),
    ]
    expect(pages.length).toBeGreaterThan(25)
    for (const html of await Promise.all(pages.map(page => page.text())))
      expect(html).not.toMatch(/\{\w+\}|undefined/)
  })

  test('fall back to English', () => {
    expect(translator('xx')('login.title')).toBe('Sign in')
    expect(translator('en')('consent.title', { client: '$& {host}' })).toBe(
      'Allow $& {host} to use your account?',
    )
  })
})

describe('languages', () => {
  const spoken = ['en', 'de', 'pt', 'ja', 'zh-Hant']
  const table: [string[], string | null, string][] = [
    [[], null, 'en'],
    [[], '', 'en'],
    [['de'], null, 'de'],
    [['DE-at'], 'ja', 'de'],
    [['xx', 'pt-BR', 'de'], null, 'pt'],
    [['xx'], 'ja', 'ja'],
    [['zh-Hant-TW'], null, 'zh-Hant'],
    [['zh'], null, 'en'],
    [[], 'fr-CH, fr;q=0.9, de;q=0.7, *;q=0.5', 'de'],
    [[], 'de;q=0.2, ja;q=0.8', 'ja'],
    [[], 'de;q=0, ja;q=0.1', 'ja'],
    [[], 'de;q=abc', 'en'],
    [
      ['', '-', '*', 'de_DE', '../en', '__proto__', 'constructor', '\u0000', 'x'.repeat(10_000)],
      ';;;,,,=;q',
      'en',
    ],
    [[...Array.from({ length: 1000 }, (_, i) => `x${i}`), 'de'], null, 'de'],
  ]
  for (const [ui_locales, header, expected] of table)
    test(`O-52 ${JSON.stringify(ui_locales).slice(0, 60)} and ${JSON.stringify(header)} is ${expected}`, () =>
      expect(chooseLocale(ui_locales, header, spoken)).toBe(expected))

  test('English is always offered, and Arabic is right to left', () => {
    expect(locales).toContain('en')
    expect(['en', 'ar', 'he-IL', 'fa', 'de'].map(direction)).toEqual(['ltr', 'rtl', 'rtl', 'rtl', 'ltr'])
  })
})

describe('derived page data', () => {
  test('initials and colour', () => {
    expect(
      ['Ada Lovelace', 'ada', 'ops-oncall', 'Grace Brewster Hopper', '', '🙂', 'éa', '李 小龍'].map(initials),
    ).toEqual([...['AL', 'A', 'OO', 'GH', '?', '?', 'É', '李小']])
    expect(tone('ada')).toBe(tone('ada'))
    expect(samples.every((_, i) => [1, 2, 3, 4, 5, 6].includes(tone(`${i}`)))).toBe(true)
  })

  test('the target of a redirect', () => {
    expect(
      [
        'https://a.example/cb?x=1',
        'http://127.0.0.1:7000/cb',
        'com.example.app:/cb',
        'x://a.example/cb',
        'no uri',
      ].map(host),
    ).toEqual([...['a.example', '127.0.0.1:7000', 'com.example.app:', 'x:', 'no uri']])
  })

  test('administrative scopes', () => {
    const scopes = [
      'admin',
      'users:delete',
      'sessions:revoke',
      'users:read',
      'profile:update',
      'openid',
      'photos.delete',
    ]
    expect(scopes.filter(isPowerful)).toEqual(['admin', 'users:delete', 'sessions:revoke'])
  })

  test('devices and times', () => {
    const tools = viewTools('en', translator('en'))
    const agents = {
      'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 Chrome/156.0 Safari/537.36':
        'Chrome on macOS',
      'Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/156.0 Safari/537.36 Edg/156.0':
        'Edge on Windows',
      'Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) Version/19.0 Mobile/15E Safari/604.1':
        'Safari on iPhone',
      'Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0': 'Firefox on Linux',
      'Mozilla/5.0 (Linux; Android 16) AppleWebKit/537.36 Chrome/156.0 Mobile Safari/537.36':
        'Chrome on Android',
      'curl/8.9.1': 'curl',
      '': 'Unknown device',
    }
    expect(Object.keys(agents).map(tools.device)).toEqual(Object.values(agents))
    const now = Date.parse('2026-11-20T12:00:00Z')
    const times = [
      '2026-11-20T12:00:00Z',
      '2026-11-20T11:59:01Z',
      '2026-11-20T11:58:00Z',
      '2026-11-19T12:00:00Z',
      '2026-08-01T00:00:00Z',
    ]
    expect(times.map(time => tools.ago(time, now))).toEqual([
      'now',
      'now',
      '2 minutes ago',
      'yesterday',
      '3 months ago',
    ])
    expect(tools.wait(16)).toBe('16\u00a0seconds')
  })
})
