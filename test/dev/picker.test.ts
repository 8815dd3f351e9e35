import { describe, expect, test } from 'bun:test'
import { startGatehouse } from '#src/testing/index.ts'
import type { Gatehouse } from '#src/testing/types.ts'
import { unescapeHtml } from '#test/support/browser.ts'
import { CHALLENGE } from '#test/support/people.ts'

/** Returns a browser that keeps cookies. It does not follow redirects. */
const browserOf = (server: Gatehouse) => {
  const cookies = new Map<string, string>()
  return async (path: string) => {
    const answer = await fetch(new URL(path, server.url), {
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
    })
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      cookies.set(name, value)
    }
    return {
      status: answer.status,
      html: await answer.text(),
      location: answer.headers.get('location') ?? '',
    }
  }
}

const authorize = (more: Record<string, string> = {}): string =>
  `/oauth/authorize?${new URLSearchParams({
    response_type: 'code',
    client_id: 'dev-web',
    redirect_uri: 'http://127.0.0.1:4711/callback',
    scope: 'openid',
    state: 'xyz',
    code_challenge: CHALLENGE,
    code_challenge_method: 'S256',
    ...more,
  })}`

const WEB = {
  client_id: 'dev-web',
  name: 'Browser application',
  type: 'public' as const,
  redirect_uris: ['http://127.0.0.1/callback'],
  grant_types: ['authorization_code' as const],
  scopes: ['openid'],
}

const linkOf = (html: string, testid: string): string =>
  unescapeHtml(new RegExp(`data-testid="${testid}"[^>]* href="([^"]*)"`).exec(html)?.[1] ?? '')

describe('dev 14: the user picker', () => {
  test('every user is one click away from the code', async () => {
    await using server = await startGatehouse()
    const get = browserOf(server)
    const { html } = await get(authorize())
    expect([...html.matchAll(/data-testid="([^"]+)"/g)].map(([, id]) => id)).toEqual([
      'user-picker',
      'user-alice',
      'user-admin',
      'password-form',
    ])
    const { status, location } = await get(linkOf(html, 'user-admin'))
    expect([status, location]).toEqual([
      302,
      expect.stringMatching(/^http:\/\/127\.0\.0\.1:4711\/callback\?code=/),
    ])
  })

  test('the production form is one click away, and works', async () => {
    await using server = await startGatehouse()
    const get = browserOf(server)
    const picker = await get(authorize())
    const { html } = await get(linkOf(picker.html, 'password-form'))
    expect(html).toContain('name="password"')
  })

  test('a pick is bound to the browser that was shown the picker', async () => {
    await using server = await startGatehouse()
    const { html } = await browserOf(server)(authorize())
    expect((await browserOf(server)(linkOf(html, 'user-alice'))).status).toBe(403)
    expect((await browserOf(server)('/dev/pick')).status).toBe(403)
  })

  test('login_hint signs in at once with auto_login only', async () => {
    await using automatic = await startGatehouse({ auto_login: true })
    const get = browserOf(automatic)
    const { status, location } = await get(authorize({ login_hint: 'alice' }))
    expect(status).toBe(303)
    expect((await get(location)).location).toContain('/callback?code=')
    expect((await browserOf(automatic)(authorize({ login_hint: 'nobody' }))).html).toContain('user-picker')
    await using manual = await startGatehouse()
    expect((await browserOf(manual)(authorize({ login_hint: 'alice' }))).html).toContain('user-picker')
  })

  test('a disabled user cannot be picked; names are escaped', async () => {
    await using server = await startGatehouse()
    await server.users.put({
      username: 'mallory',
      email: 'm@example.com',
      first_name: '<b>Mallory</b>',
      enabled: false,
    })
    const get = browserOf(server)
    const { html } = await get(authorize())
    expect(html).toContain('&lt;b&gt;Mallory&lt;/b&gt;')
    expect((await get(linkOf(html, 'user-mallory'))).status).toBe(400)
  })

  test('RUN-18 a long list can be searched by username and email', async () => {
    const users = Array.from({ length: 60 }, (_, i) => ({ username: `user${i}`, email: `u${i}@example.com` }))
    await using server = await startGatehouse({ seed: { users, clients: [WEB] } })
    const get = browserOf(server)
    const picked = (html: string) => [...html.matchAll(/data-testid="user-(user\d+)"/g)].map(([, id]) => id)
    const { html } = await get(authorize())
    expect(picked(html)).toHaveLength(50)
    const [, request = ''] = /name="request" value="([^"]*)"/.exec(html) ?? []
    const search = async (text: string) =>
      get(`/oauth/login?${new URLSearchParams({ request, search: text })}`)
    expect(picked((await search('USER57')).html)).toEqual(['user57'])
    expect(picked((await search('u58@')).html)).toEqual(['user58'])
    const none = await search('"><b>')
    expect([none.status, picked(none.html)]).toEqual([200, []])
    expect(none.html).not.toContain('<b>')
  })
})
