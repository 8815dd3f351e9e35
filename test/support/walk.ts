import { createSetUpLink } from '#src/links/links.ts'
import type { Json, TestApp } from './app.ts'
import { answerOf, formOf, openBrowser } from './browser.ts'
import { addUser, authorizeUrl, PASSWORD, REDIRECT, signIn, signInLink, VERIFIER } from './people.ts'
import { basic } from './tokens.ts'

type App = Pick<TestApp, 'call' | 'admin' | 'context'>

export interface Exchange {
  asked: string
  status: number
  headers: Headers
  text: string
}

export interface Walk {
  /** All secrets that were issued or entered, by name. */
  secrets: Map<string, string>
  /** All answers of the walk. */
  answers: Exchange[]
}

/** Functions that make single-use links, by a command or by a service. */
interface Links {
  setUp(): Promise<string>
  signIn(user: Json): Promise<string>
}

const ownLinks = (app: App): Links => ({
  setUp: () => createSetUpLink(app.context),
  signIn: user => signInLink(app, user as { id: string }),
})

const NEXT = 'Next-horse-9'

/**
 * Runs every flow once, including failed attempts. Every secret that can be issued, entered or stored then
 * occurs.
 */
export const walkEveryFlow = async (
  { admin, call: ask, context }: App,
  links: Links = ownLinks({ admin, call: ask, context }),
): Promise<Walk> => {
  const secrets = new Map<string, string>()
  const answers: Exchange[] = []
  const keep = (name: string, value: string | undefined): string => {
    if (!value) throw new Error(`no ${name}`)
    secrets.set(name, value)
    return value
  }
  const call: App['call'] = async (path, init) => {
    const response = await ask(path, init)
    const text = await response.clone().text()
    const { status, headers } = response
    answers.push({ asked: `${init?.method ?? 'GET'} ${path}`, status, headers, text })
    return response
  }
  const app = { call, context, admin }
  const token = async (form: Record<string, string>, headers: Record<string, string> = {}): Promise<Json> =>
    (await call('/oauth/token', { method: 'POST', body: new URLSearchParams(form), headers })).json()

  // Creates the first administrator through the set-up link.
  const first = openBrowser(app)
  const setUp = keep('set-up link', new URL(await links.setUp()).searchParams.get('token') ?? '')
  const page = await first.get(`/account/set-up?token=${setUp}`)
  keep('csrf token of the set-up', formOf(page).fields.csrf_token)
  const password = keep('first password', 'First-admin-horse-1')
  const root = { username: 'root', email: 'root@example.com', first_name: 'Root', last_name: 'Admin' }
  await first.submit(page, { ...root, password: 'Too-weak-but-typed', password_repeat: 'Different-typed-1' })
  keep('refused password', 'Too-weak-but-typed')
  keep('mistyped password', 'Different-typed-1')
  await first.submit(page, { ...root, password, password_repeat: password })

  // Creates a client whose first secret is replaced, and a user whose first password is temporary.
  const made = await admin('POST', '/clients', {
    client_id: 'walked',
    name: 'Walked',
    type: 'confidential',
    grant_types: ['authorization_code', 'refresh_token', 'client_credentials'],
    scopes: ['openid', 'profile', 'email'],
    redirect_uris: [REDIRECT],
    capabilities: ['token_introspection'],
  })
  keep('first client secret', made.body.client_secret)
  const { body: renewed } = await admin('POST', '/clients/walked/secret')
  const client_secret = keep('client secret', renewed.client_secret)
  const client = { client_id: 'walked', client_secret }
  keep('user password', PASSWORD)
  const user = await addUser(app, 'walker')
  await admin('POST', '/users', { ...user, password: keep('password of a refused user', 'Refused-horse-2') })
  const temporary = keep('temporary password', 'Temporary-horse-3')
  await admin('POST', `/users/${user.id}/reset-password`, { password: temporary, temporary: true })

  // Runs a login with failed attempts, a forced change of the password, and a consent.
  const browser = openBrowser(app)
  const login = await browser.get(authorizeUrl('walked', { scope: 'openid profile', state: 'a-state' }))
  keep('csrf token of the login', formOf(login, '/oauth/login').fields.csrf_token)
  keep('handle of the login', formOf(login, '/oauth/login').fields.request)
  await signIn(browser, login, 'walker', keep('wrong password', 'Wrong-horse-4'))
  const change = await signIn(browser, login, 'walker', temporary)
  const next = { password: keep('new password', NEXT), password_repeat: NEXT }
  const consent = await browser.follow(await browser.submit(change, next))
  keep('csrf token of the consent', formOf(consent, '/oauth/consent').fields.csrf_token)
  const { code = '' } = answerOf(await browser.submit(consent, { decision: 'approve' }, '/oauth/consent'))
  keep('code', code)
  keep('code verifier', VERIFIER)
  for (const [name, value] of browser.cookies) keep(`cookie ${name}`, value)
  const unused = answerOf(await browser.get(authorizeUrl('walked', { prompt: 'none' })))
  keep('unredeemed code', unused.code)
  const stored = await call('/oauth/authorize', {
    method: 'POST',
    body: new URLSearchParams(authorizeUrl('walked').split('?')[1]),
  })
  keep(
    'stored handle',
    new URL(stored.headers.get('location') ?? '', REDIRECT).searchParams.get('handle') ?? '',
  )

  // Issues tokens, renews them, and misuses them.
  const redeem = { grant_type: 'authorization_code', code, redirect_uri: REDIRECT, code_verifier: VERIFIER }
  await token({ ...redeem, ...client, client_secret: keep('guessed client secret', 'guessed-client-secret') })
  const tokens = await token({ ...redeem, ...client })
  for (const name of ['access_token', 'refresh_token', 'id_token']) keep(name, tokens[name])
  const { refresh_token } = tokens
  const fresh = await token({ grant_type: 'refresh_token', refresh_token }, basic('walked', client_secret))
  keep('second refresh_token', fresh.refresh_token)
  keep('second access_token', fresh.access_token)
  keep('client access_token', (await token({ grant_type: 'client_credentials', ...client })).access_token)
  const bearer = { authorization: `Bearer ${fresh.access_token}` }
  await call('/oauth/userinfo', { headers: bearer })
  await call(`/oauth/userinfo?access_token=${fresh.access_token}`, { headers: bearer })
  for (const value of [fresh.access_token, fresh.refresh_token])
    await call('/oauth/introspect', {
      method: 'POST',
      body: new URLSearchParams({ ...client, token: value }),
    })
  await token({ grant_type: 'refresh_token', refresh_token, ...client })
  await call('/oauth/revoke', { method: 'POST', body: new URLSearchParams({ token: fresh.refresh_token }) })

  // Uses a sign-in link, opens the account page, changes the password on that page, and logs out.
  const link = keep('sign-in link', new URL(await links.signIn(user)).searchParams.get('token') ?? '')
  const lost = openBrowser(app)
  const chosen = keep('password chosen by link', 'Linked-horse-5')
  const opened = await lost.get(`/account/sign-in?token=${link}`)
  await lost.follow(await lost.submit(opened, { password: chosen, password_repeat: chosen }))
  const unopened = new URL(await links.signIn(user)).searchParams.get('token') ?? ''
  keep('unused sign-in link', unopened)
  const account = await lost.get('/account')
  keep('csrf token of the account', formOf(account).fields.csrf_token)
  const changing = await lost.get('/account/change-password')
  await lost.submit(changing, {
    current_password: keep('mistyped current password', 'Mistyped-horse-6'),
    password: NEXT,
    password_repeat: NEXT,
  })
  for (const [name, value] of lost.cookies) keep(`later cookie ${name}`, value)
  await lost.get(`/oauth/logout?id_token_hint=${tokens.id_token}&client_id=walked`)

  // Sends failing requests. Their input must be neither returned nor stored.
  const broken = keep('secret in broken JSON', 'Secret-in-broken-json-7')
  await call('/api/v1/admin/users', {
    method: 'POST',
    headers: { ...bearer, 'content-type': 'application/json' },
    body: `{"password":"${broken}",`,
  })
  await admin('POST', '/users', { password: { secret: broken }, [broken.replace(/\W/g, ' ')]: broken })
  await call(`/oauth/token?client_secret=${client_secret}`, {
    method: 'POST',
    body: new URLSearchParams(client),
  })
  await call(`/oauth/authorize?code=${code}&request=${tokens.id_token}`)
  await call(`/nowhere/at/all?access_token=${tokens.access_token}`)
  return { secrets, answers }
}
