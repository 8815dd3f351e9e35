import { describe, expect, test } from 'bun:test'
import { loadConfig } from '#src/config.ts'
import { clearCookie, cookieNames, findCookie, setCookie } from '#src/http/cookies.ts'

const configOf = (url: string) => ({ ...loadConfig({}).config, url })

describe('O-31 cookie names depend on the scheme in the settings', () => {
  test.each([
    ['https://id.example.com', '__Host-gatehouse_login', '__Host-gatehouse_browser'],
    ['https://id.example.com:8443', '__Host-gatehouse_login', '__Host-gatehouse_browser'],
    ['http://localhost:8080', 'gatehouse_login_8080', 'gatehouse_browser_8080'],
    ['http://localhost', 'gatehouse_login_80', 'gatehouse_browser_80'],
  ])('%s', (url, login, browser) => {
    const device = login.replace('login', 'device')
    expect(cookieNames(configOf(url))).toEqual({
      login,
      browser,
      device,
      link: device.replace('device', 'link'),
      remembered: device.replace('device', 'remembered'),
      language: device.replace('device', 'language'),
    })
  })
})

test('O-31 attributes: Path, HttpOnly, SameSite=Lax, no Domain, Secure only on https', () => {
  expect(setCookie(configOf('https://id.example.com'), 'a', 'b', 60.9)).toBe(
    'a=b; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=60',
  )
  expect(setCookie(configOf('http://localhost:8080'), 'a', 'b')).toBe('a=b; Path=/; HttpOnly; SameSite=Lax')
  expect(clearCookie(configOf('http://localhost:8080'), 'a')).toEndWith(
    'a=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0',
  )
})

describe('cookies are read as sent', () => {
  const find = (cookie: string) => findCookie(new Request('http://localhost', { headers: { cookie } }), 'one')
  test.each([
    ['one=1', '1'],
    ['zero=0; one=1; two=2', '1'],
    ['zero=0;one=1;two=2', '1'],
    ['one={"a":1}', '{"a":1}'],
    ['one=a=b', 'a=b'],
    ['one=first; one=second', 'first'],
    ['one=', ''],
    ['One=1', undefined],
    ['someone=1', undefined],
    ['one.more=1', undefined],
    ['one', undefined],
    ['', undefined],
  ])('%s', (header, value) => {
    expect(find(header)).toBe(value)
  })

  test('no header', () => {
    expect(findCookie(new Request('http://localhost'), 'one')).toBeUndefined()
  })
})
