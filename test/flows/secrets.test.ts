import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Json, startApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { gatehouse, type Running, SECRET, serveExecutable } from '#test/support/executable.ts'
import { REDIRECT, VERIFIER } from '#test/support/people.ts'
import { remote } from '#test/support/remote.ts'
import { until } from '#test/support/until.ts'
import { type Walk, walkEveryFlow } from '#test/support/walk.ts'

// Timeout in ms: each test starts a process, and the machine may be busy.
setDefaultTimeout(30_000)

/**
 * Returns the names of the secrets that occur in a text. Each secret looks the same in a URL, in HTML and in
 * JSON.
 */
const found = ({ secrets }: Walk, text: string): string[] =>
  [...secrets].filter(([, value]) => text.includes(value)).map(([name]) => name)

const walked = async (server: Running): Promise<Walk> => {
  const env = { GATEHOUSE_DATA_DIR: server.data_dir, GATEHOUSE_URL: server.url }
  const link = async (...user: string[]) => (await gatehouse(['user', 'link', ...user], env)).stdout.trim()
  const walk = await walkEveryFlow(remote(server), {
    setUp: () => link(),
    signIn: user => link(user.username),
  })
  walk.secrets.set('admin client secret', SECRET)
  return walk
}

const files = (server: Running) =>
  readdirSync(server.data_dir).map(
    name => [name, readFileSync(join(server.data_dir, name), 'latin1')] as const,
  )

describe('after every flow at the executable', () => {
  test('O-43 O-62 no code, token, secret or password is in its output, events or files, except those meant to be read', async () => {
    await using server = await serveExecutable({ GATEHOUSE_LOG_LEVEL: 'trace' })
    const walk = await walked(server)
    const events: Json[] = []
    for (let path = '/events?limit=100'; path; ) {
      const { body } = await server.admin('GET', path)
      events.push(...body.data)
      const { next_cursor } = body.pagination
      path = next_cursor ? `/events?limit=100&cursor=${encodeURIComponent(next_cursor)}` : ''
    }
    expect(events.length).toBeGreaterThan(20)
    expect(found(walk, JSON.stringify(events))).toEqual([])
    for (const [name, content] of files(server)) expect([name, found(walk, content)]).toEqual([name, []])

    server.signal('SIGTERM')
    expect(await server.exited).toBe(0)
    await until(() => server.output().includes('"event":"stopped"'))
    const logged = server
      .output()
      .split('\n')
      .filter(line => line.includes('"event":"request"'))
    expect(logged.length).toBeGreaterThan(walk.answers.length)
    // The first start prints a set-up link for the operator. The walk uses another link.
    expect(found(walk, server.output())).toEqual([])
    for (const [name, content] of files(server)) expect([name, found(walk, content)]).toEqual([name, []])
    const digests = files(server).find(([name]) => name === 'gatehouse.db')?.[1]
    expect(digests).toContain('$argon2id$')
  })
})

describe('after every flow', async () => {
  const app = await startApp()
  const walk = await walkEveryFlow(app)
  const { secrets, answers } = walk

  test('O-43 no answer contains a password, and no page or refusal repeats input', () => {
    const handedOut = /^(set-up link|csrf token|handle|cookie|later cookie|stored)/
    const handedOutBy = (path: string) =>
      answers.filter(({ asked }) => asked === path).map(({ text }) => text)
    expect(found(walk, handedOutBy('POST /oauth/token').join(''))).toContain('refresh_token')
    for (const { asked, text } of answers) {
      const shown = found(walk, text).filter(name => !handedOut.test(name))
      const allowed = asked.startsWith('POST /oauth/token')
        ? [
            'access_token',
            'refresh_token',
            'id_token',
            'second refresh_token',
            'second access_token',
            'client access_token',
          ]
        : []
      const sign_in = asked.startsWith('GET /account/sign-in') ? ['sign-in link'] : []
      expect([asked, shown.filter(name => ![...allowed, ...sign_in].includes(name))]).toEqual([asked, []])
    }
  })

  test('O-43 no page sends a referrer, and no redirect with a code does', () => {
    for (const { asked, headers } of answers) {
      const isPage = headers.get('content-type')?.startsWith('text/html') || headers.has('location')
      if (isPage)
        expect([asked, headers.get('referrer-policy')]).toEqual([
          asked,
          expect.stringMatching(/^(same-origin|no-referrer)$/),
        ])
      expect(headers.get('location') ?? '').not.toContain('access_token')
    }
  })

  test('O-33 no redirect repeats a POST', () => {
    const redirects = answers.filter(({ headers }) => headers.has('location'))
    expect(redirects.length).toBeGreaterThan(5)
    expect(redirects.filter(({ status }) => status !== 302 && status !== 303)).toEqual([])
  })

  describe('M-04 each value that was issued', async () => {
    const live = new Map([...secrets].filter(([name]) => !/password|verifier|broken|guessed/.test(name)))
    const cookies = [...secrets.keys()].filter(name => name.startsWith('cookie ')).map(name => name.slice(7))
    const attempts: Record<string, { own: RegExp; ask: (value: string) => Promise<Response> }> = {
      'a code': {
        own: /^unredeemed code$/,
        ask: value =>
          token({
            grant_type: 'authorization_code',
            code: value,
            redirect_uri: REDIRECT,
            code_verifier: VERIFIER,
          }),
      },
      'a refresh token': {
        own: /none/,
        ask: value => token({ grant_type: 'refresh_token', refresh_token: value }),
      },
      'a client secret': {
        own: /^client secret$/,
        ask: value => token({ grant_type: 'client_credentials', client_secret: value }),
      },
      'a bearer token': {
        own: /^(client access_token|second access_token|access_token)$/,
        ask: value => app.call('/oauth/userinfo', { headers: { authorization: `Bearer ${value}` } }),
      },
      'a bearer token of the admin API': {
        own: /^(client access_token)$/,
        ask: value => app.call('/api/v1/admin/users', { headers: { authorization: `Bearer ${value}` } }),
      },
      'a cursor': {
        own: /none/,
        ask: async value => {
          const { status } = await app.admin('GET', `/users?cursor=${encodeURIComponent(value)}`)
          return new Response(null, { status })
        },
      },
      'a stored post': {
        own: /^stored handle$/,
        ask: value => app.call(`/oauth/authorize/replay?handle=${encodeURIComponent(value)}`),
      },
      'a sign-in link': {
        own: /^unused sign-in link$/,
        ask: value => app.call(`/account/sign-in?token=${encodeURIComponent(value)}`),
      },
      'a set-up link': {
        own: /none/,
        ask: value => app.call(`/account/set-up?token=${encodeURIComponent(value)}`),
      },
    }
    const token = (form: Record<string, string>) =>
      app.call('/oauth/token', {
        method: 'POST',
        body: new URLSearchParams({
          client_id: 'walked',
          client_secret: live.get('client secret') ?? '',
          ...form,
        }),
      })

    for (const [what, { own, ask }] of Object.entries(attempts))
      for (const [name, value] of live)
        if (!own.test(name))
          test(`M-04 ${name} does not work as ${what}`, async () => {
            // Failures are counted by address and expire after a minute.
            app.clock.advance(61_000)
            expect((await ask(value)).status).toBeOneOf([400, 401, 410])
          })

    for (const cookie of cookies)
      for (const [name, value] of live)
        if (!name.includes('cookie'))
          test(`M-04 ${name} does not work as the cookie ${cookie}`, async () => {
            const browser = openBrowser(app)
            browser.cookies.set(cookie, value)
            expect((await browser.follow(await browser.get('/account'))).heading).toBe('Sign in')
          })
  })
})
