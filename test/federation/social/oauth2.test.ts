import { beforeEach, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import type { Outbound } from '#src/context.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { type Browser, openBrowser, type Page } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { addUser } from '#test/support/people.ts'

/** The provider's answers by URL, and the requests that the server sent to the provider. */
let answers: Record<string, () => Response>
let asked: { url: string; headers: Headers; body: URLSearchParams }[]

const fetch: Outbound = async (url, init) => {
  const headers = new Headers(init.headers)
  asked.push({ url: String(url), headers, body: new URLSearchParams(String(init.body ?? '')) })
  return answers[String(url)]?.() ?? new Response('', { status: 404 })
}

const app = await startApp({}, { fetch })
const preset = (name: string, more: Json = {}) =>
  create(app, '/identity-providers', {
    type: 'oauth2',
    preset: name,
    alias: name,
    name,
    client_id: `at-${name}`,
    client_secret: 'there',
    ...more,
  })
await preset('github')
await preset('github', { alias: 'trusted', trust_email: true })
await preset('gitlab', { trust_email: true })
await preset('discord')

let made = 0
const fresh = (): Browser => openBrowser(app, { ip: `198.51.100.${made++ & 255}` })

const GITHUB_USER = 'https://api.github.com/user'
const token = () =>
  Response.json({ access_token: 'gho_1', token_type: 'bearer', scope: 'read:user,user:email' })

const octocat = (more: Json = {}) => ({
  id: 583_231,
  login: 'octocat',
  name: 'Mona Lisa Octocat',
  email: null,
  ...more,
})
const emails = (...list: [string, boolean, boolean][]) =>
  Response.json(list.map(([email, primary, verified]) => ({ email, primary, verified, visibility: null })))

beforeEach(async () => {
  asked = []
  answers = {
    'https://github.com/login/oauth/access_token': token,
    [GITHUB_USER]: () => Response.json(octocat()),
    [`${GITHUB_USER}/emails`]: () => emails(['mona@github.example', true, true]),
  }
  await app.events()
})

const goThrough = async (alias: string, more = ''): Promise<Page> => {
  const browser = fresh()
  const away = await browser.get(`/oauth/social/${alias}`)
  const state = new URL(away.location ?? '').searchParams.get('state')
  return browser.follow(
    await browser.get(`/oauth/social/${alias}/callback?code=the-code&state=${state}${more}`),
  )
}

const reasons = async () => (await app.events()).map(({ type, metadata }) => metadata.failure_reason ?? type)
const user = async (search: string): Promise<Json> =>
  (await app.admin('GET', `/users?search=${search}`)).body.data[0]

describe('GitHub', () => {
  test('is called with PKCE, the client secret in the form and a User-Agent', async () => {
    const browser = fresh()
    const away = new URL((await browser.get('/oauth/social/github')).location ?? '')
    expect(away.origin + away.pathname).toBe('https://github.com/login/oauth/authorize')
    expect(Object.fromEntries(away.searchParams)).toEqual({
      response_type: 'code',
      client_id: 'at-github',
      redirect_uri: 'http://localhost:8080/oauth/social/github/callback',
      scope: 'read:user user:email',
      state: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: 'S256',
    })
    const state = away.searchParams.get('state')
    await browser.get(`/oauth/social/github/callback?code=the-code&state=${state}`)
    const [exchange, ...others] = asked
    const { code_verifier = '', ...form } = Object.fromEntries(exchange?.body ?? [])
    expect(form).toEqual({
      grant_type: 'authorization_code',
      code: 'the-code',
      redirect_uri: 'http://localhost:8080/oauth/social/github/callback',
      client_id: 'at-github',
      client_secret: 'there',
    })
    expect(createHash('sha256').update(code_verifier).digest('base64url')).toBe(
      away.searchParams.get('code_challenge') ?? '',
    )
    expect(others.map(({ url }) => url)).toEqual([GITHUB_USER, `${GITHUB_USER}/emails`])
    for (const { headers } of others)
      expect([headers.get('authorization'), headers.get('user-agent')]).toEqual(['Bearer gho_1', 'Gatehouse'])
  })

  test('a new user is identified by the numeric id and gets the verified primary address', async () => {
    answers[`${GITHUB_USER}/emails`] = () =>
      emails(['old@github.example', false, true], ['new@github.example', true, true])
    answers[GITHUB_USER] = () => Response.json(octocat({ id: 1, login: 'new-cat' }))
    expect((await goThrough('trusted')).heading).toBe('Your account')
    expect(await user('new-cat')).toMatchObject({
      email: 'new@github.example',
      email_verified: true,
      first_name: 'Mona',
      last_name: 'Lisa Octocat',
    })
    answers[GITHUB_USER] = () => Response.json(octocat({ id: 1, login: 'renamed' }))
    await app.events()
    expect((await goThrough('trusted')).heading).toBe('Your account')
    expect(await reasons()).toEqual(['user.login'])
  })

  test('only the address list verifies an address: never the profile', async () => {
    await addUser(app, 'mona')
    const claims = octocat({ id: 2, login: 'mona-2', email: 'mona@example.com', email_verified: true })
    answers[GITHUB_USER] = () => Response.json(claims)
    answers[`${GITHUB_USER}/emails`] = () => emails(['mona@example.com', true, false])
    expect((await goThrough('trusted')).heading).toBe('Is this you?')
    answers[`${GITHUB_USER}/emails`] = () => emails(['mona@example.com', true, true])
    expect((await goThrough('trusted')).heading).toBe('Your account')
  })

  test('an address list in another format: an address is asked for, or refused', async () => {
    answers[GITHUB_USER] = () => Response.json(octocat({ id: 3, login: 'listless' }))
    for (const list of [{}, [], [null, 7, { email: 5 }], { message: 'x' }]) {
      answers[`${GITHUB_USER}/emails`] = () => Response.json(list)
      expect((await goThrough('github')).heading).toBe('One more thing')
    }
    answers[`${GITHUB_USER}/emails`] = () => new Response('', { status: 403 })
    expect((await goThrough('github')).status).toBe(400)
    expect(await reasons()).toEqual(['userinfo'])
  })

  test('the address list is not read for a linked account', async () => {
    answers[GITHUB_USER] = () => Response.json(octocat({ id: 4, login: 'linked' }))
    answers[`${GITHUB_USER}/emails`] = () => emails(['linked@github.example', true, true])
    expect((await goThrough('github')).heading).toBe('Your account')
    answers[`${GITHUB_USER}/emails`] = () => new Response('', { status: 503 })
    await app.events()
    expect((await goThrough('github')).heading).toBe('Your account')
    expect(await reasons()).toEqual(['user.login'])
    expect(await user('linked')).toMatchObject({ email: 'linked@github.example', email_verified: false })
  })

  const bad: [string, string, () => void][] = [
    [
      'the error that it answers with 200',
      'bad_answer',
      () =>
        (answers['https://github.com/login/oauth/access_token'] = () =>
          Response.json({ error: 'bad_verification_code' })),
    ],
    [
      'no token',
      'bad_answer',
      () =>
        (answers['https://github.com/login/oauth/access_token'] = () =>
          Response.json({ token_type: 'bearer' })),
    ],
    ['no user', 'userinfo', () => (answers[GITHUB_USER] = () => Response.json(null))],
    [
      'a user without a number',
      'subject_missing',
      () => (answers[GITHUB_USER] = () => Response.json({ login: 'x' })),
    ],
    [
      'a number that cannot be told from its neighbours',
      'subject_missing',
      () => (answers[GITHUB_USER] = () => Response.json({ id: 2 ** 60 })),
    ],
    [
      'a subject of more bytes than PostgreSQL can index',
      'subject_missing',
      () => {
        const id = String.fromCodePoint(
          ...Array.from({ length: 1_024 }, (_, n) => 0x4e00 + ((n * 7_919) % 20_000)),
        )
        answers[GITHUB_USER] = () => Response.json(octocat({ id }))
      },
    ],
    ['a refusal', 'userinfo', () => (answers[GITHUB_USER] = () => new Response('', { status: 500 }))],
  ]
  test.each(bad)('refused: %s', async (_, reason, spoil) => {
    spoil()
    const page = await goThrough('github')
    expect([page.status, page.heading]).toEqual([400, 'Signing in didn’t work'])
    expect(await reasons()).toEqual([reason])
  })

  test('an issuer in the answer is ignored: the redirect URI identifies the provider', async () => {
    const { heading } = await goThrough('github', '&iss=https%3A%2F%2Fgithub.com%2Flogin%2Foauth')
    expect(heading).toBe('Your account')
  })
})

test('GitLab never reports an address as verified, whatever its profile says', async () => {
  await addUser(app, 'tanuki')
  Object.assign(answers, {
    'https://gitlab.com/oauth/token': token,
    'https://gitlab.com/api/v4/user': () =>
      Response.json({
        id: 9,
        username: 'tanuki',
        name: 'Tanuki',
        email: 'tanuki@example.com',
        email_verified: true,
      }),
  })
  expect((await goThrough('gitlab')).heading).toBe('Is this you?')
})

test('FED-21 a mapping of email_verified verifies the address of a provider without address list', async () => {
  await addUser(app, 'fox')
  await preset('gitlab', {
    alias: 'mapped',
    trust_email: true,
    attribute_mapping: { email_verified: 'confirmed' },
  })
  const claims: Json = {
    id: 10,
    username: 'fox',
    name: 'Fox',
    email: 'fox@example.com',
    email_verified: true,
  }
  Object.assign(answers, {
    'https://gitlab.com/oauth/token': token,
    'https://gitlab.com/api/v4/user': () => Response.json(claims),
  })
  expect((await goThrough('mapped')).heading).toBe('Is this you?')
  claims.confirmed = true
  expect((await goThrough('mapped')).heading).toBe('Your account')
})

test('a subject of 2,048 bytes is linked', async () => {
  const id = String.fromCodePoint(...Array.from({ length: 1_024 }, (_, n) => 0x400 + ((n * 101) % 256)))
  answers[GITHUB_USER] = () => Response.json(octocat({ id, login: 'long' }))
  answers[`${GITHUB_USER}/emails`] = () => emails(['long@github.example', true, true])
  for (let n = 0; n < 2; n++) expect((await goThrough('github')).heading).toBe('Your account')
})

test('Discord, with its own claim names', async () => {
  Object.assign(answers, {
    'https://discord.com/api/oauth2/token': token,
    'https://discord.com/api/users/@me': () =>
      Response.json({
        id: '80351110224678912',
        username: 'nelly',
        global_name: 'Nelly Bly',
        email: 'nelly@discord.example',
        verified: true,
      }),
  })
  expect((await goThrough('discord')).heading).toBe('Your account')
  expect(await user('nelly')).toMatchObject({
    username: 'nelly',
    first_name: 'Nelly',
    last_name: 'Bly',
    email_verified: false,
  })
})
