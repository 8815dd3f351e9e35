import { afterAll, beforeAll, expect } from 'bun:test'
import { generateSync } from 'otplib'
import type { Page } from 'playwright-core'
import type { Json } from '#test/support/app.ts'
import {
  closeChromium,
  openPage,
  startClient,
  testInChromium,
  withAuthenticator,
} from '#test/support/chromium.ts'
import { type Running, serveExecutable } from '#test/support/executable.ts'
import { CHALLENGE, PASSWORD } from '#test/support/people.ts'
import { startPostOffice } from '#test/support/post-office.ts'
import { until } from '#test/support/until.ts'

const NEW = 'Another-Horse-8'
const site = startClient()
const REDIRECT = `${site.origin}/callback`
let server: Running & AsyncDisposable
let users = 0
const seen = new Set<string>()

const post = await startPostOffice()

beforeAll(async () => {
  server = await serveExecutable(post.settings)
  await made('/clients', {
    client_id: 'notes',
    name: 'Orbit Notes',
    type: 'public',
    grant_types: ['authorization_code'],
    scopes: ['openid', 'profile', 'email'],
    redirect_uris: [REDIRECT],
    consent_required: false,
  })
}, 30_000)

afterAll(async () => {
  await closeChromium()
  await server[Symbol.asyncDispose]()
  await site.stop()
  post.close()
})

const made = async (path: string, body: Json): Promise<Json> => {
  const answer = await server.admin('POST', path, body)
  expect(answer.status).toBe(201)
  return answer.body
}
const addUser = (more: Json = {}): Promise<Json> => {
  const username = `person${++users}`
  const email = `${username}@example.com`
  return made('/users', { username, email, first_name: '', last_name: '', password: PASSWORD, ...more })
}

/**
 * Returns the types of this user's events since the last call, oldest first. A test can thus assert that
 * there are no other events.
 */
const eventsOf = async (user: Json): Promise<string[]> => {
  const { body } = await server.admin('GET', `/events?target_id=${user.id}&order=asc&limit=100`)
  const fresh = body.data.filter(({ id }: Json) => !seen.has(id))
  for (const { id } of fresh) seen.add(id)
  return fresh.map(({ type }: Json) => type).filter((type: string) => type !== 'user.created')
}

const open = (page: Page, more: Record<string, string> = {}) =>
  page.goto(
    `${server.url}/oauth/authorize?${new URLSearchParams({
      response_type: 'code',
      client_id: 'notes',
      redirect_uri: REDIRECT,
      scope: 'openid',
      code_challenge: CHALLENGE,
      code_challenge_method: 'S256',
      ...more,
    })}`,
  )
const signIn = async (page: Page, user: Json, password = PASSWORD): Promise<void> => {
  await page.getByLabel('Username or email').fill(user.username)
  await page.getByLabel('Password', { exact: true }).fill(password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
}
const atClient = async (page: Page): Promise<URLSearchParams> => {
  await page.waitForURL(address => address.href.startsWith(REDIRECT))
  return new URL(page.url()).searchParams
}
const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name }).waitFor()

/**
 * Declines the offer of a passkey. A browser with an authenticator shows this offer after a login with a
 * password.
 */
const declineOffer = async (page: Page): Promise<void> => {
  await heading(page, 'Sign in faster next time')
  await page.getByRole('button', { name: 'Not now' }).click()
}

/** Goes from the security page to the enrolment page for a kind of factor. Signs in if necessary. */
const offer = async (page: Page, user: Json, kind: 'Passkey' | 'Authenticator app') => {
  await page.goto(`${server.url}/account/security`)
  if (await page.getByLabel('Username or email').isVisible()) await signIn(page, user)
  if (kind === 'Passkey') await declineOffer(page)
  await page.getByRole('link', { name: 'Add', exact: true }).click()
  await page.getByRole('link', { name: kind }).click()
}

/** Ticks the box on the page of the recovery codes, and continues. */
const acceptRecoveryCodes = async (page: Page) => {
  await page.getByLabel('I have saved these codes').check()
  await page.getByRole('button', { name: 'Continue' }).click()
}

/** Enrols an authenticator app and returns its key and the recovery codes. */
const enrolApp = async (page: Page, user: Json) => {
  await offer(page, user, 'Authenticator app')
  const key = (await page.locator('code').textContent())?.replaceAll(' ', '') ?? ''
  await page.getByLabel('Six-digit code').fill(codeOf(key))
  await page.getByRole('button', { name: 'Turn on' }).click()
  await heading(page, 'Save your recovery codes')
  // The heading is shown before the end of the page is read.
  await page.waitForLoadState()
  const codes = await page.locator('code.recovery-code').allInnerTexts()
  await acceptRecoveryCodes(page)
  await heading(page, 'Security')
  return { key, codes }
}
/** Returns the code that is valid `ahead` seconds from now. */
const codeOf = (key: string, ahead = 0) =>
  generateSync({ secret: key, epoch: Math.floor(Date.now() / 1000) + ahead })

const enrolPasskey = async (page: Page, user: Json) => {
  await offer(page, user, 'Passkey')
  await page.getByRole('button', { name: 'Create passkey' }).click()
}

testInChromium(
  'an authenticator app: enrolled, asked for, refused when used before',
  async () => {
    const user = await addUser()
    const { page, close } = await openPage()
    const { key } = await enrolApp(page, user)
    expect(await eventsOf(user)).toEqual(['user.login', 'user.mfa_enabled'])
    await close()

    const other = await openPage({ javaScriptEnabled: false })
    await open(other.page)
    await signIn(other.page, user)
    await heading(other.page, 'Two-step verification')
    await other.page.getByLabel('Six-digit code').fill('000000')
    await other.page.getByRole('button', { name: 'Continue' }).click()
    expect(await other.page.getByRole('alert').textContent()).toContain('isn’t right')
    await other.page.getByLabel('Six-digit code').fill(codeOf(key, 30))
    await other.page.getByRole('button', { name: 'Continue' }).click()
    expect((await atClient(other.page)).has('code')).toBe(true)
    expect(await eventsOf(user)).toEqual(['user.first_factor_proven', 'user.login_failed'])
    await other.close()
  },
  120_000,
)

/**
 * Removes the functions that read and write passkeys as JSON. Older browsers have passkeys, but not these
 * functions.
 */
const older = `delete PublicKeyCredential.parseCreationOptionsFromJSON
  delete PublicKeyCredential.parseRequestOptionsFromJSON
  delete PublicKeyCredential.prototype.toJSON`

testInChromium(
  'a passkey: created, as the second factor, alone by its button, and from the autofill, in older browsers too',
  async () => {
    const user = await addUser()
    const { page, close } = await openPage()
    await page.addInitScript(older)
    const device = await withAuthenticator(page)
    await enrolPasskey(page, user)
    await heading(page, 'Save your recovery codes')
    expect(await eventsOf(user)).toEqual(['user.login', 'user.mfa_enabled'])
    const [credential] = await device.credentials()
    expect([credential?.isResidentCredential, credential?.rpId]).toEqual([true, 'localhost'])
    expect(Buffer.from(credential?.userHandle ?? '', 'base64').toString()).toBe(user.id)

    // The authenticator does not answer while the password is typed.
    await device.answer(false)
    await page.context().clearCookies()
    await open(page)
    await signIn(page, user)
    await heading(page, 'Two-step verification')
    await device.answer(true)
    await page.getByRole('button', { name: 'Use passkey' }).click()
    expect((await atClient(page)).has('code')).toBe(true)

    await device.answer(false)
    await page.context().clearCookies()
    await open(page, { login_hint: 'nobody in particular' })
    await page.getByRole('button', { name: 'Sign in with a passkey' }).waitFor()
    await device.answer(true)
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    expect((await atClient(page)).has('code')).toBe(true)

    await page.context().clearCookies()
    await open(page)
    expect((await atClient(page)).has('code')).toBe(true)
    expect(await eventsOf(user)).toEqual(['user.first_factor_proven'])
    await close()
  },
  120_000,
)

/** Counts the new passkeys and the sent forms. Drops the first form, as a network may do. */
const dropping = `globalThis.counts = { created: 0, sent: 0 }
  const create = navigator.credentials.create.bind(navigator.credentials)
  navigator.credentials.create = options => create(options, counts.created++)
  const { submit } = HTMLFormElement.prototype
  HTMLFormElement.prototype.submit = function () {
    if (counts.sent++) submit.call(this)
  }`

testInChromium(
  'PAG-72 a second tap makes no second passkey, also when the first form was lost',
  async () => {
    const user = await addUser()
    const { page, close } = await openPage()
    await page.clock.install({ time: new Date('2026-11-20T12:00:00Z') })
    await page.clock.pauseAt(new Date('2026-11-20T13:00:00Z'))
    await page.addInitScript(dropping)
    const device = await withAuthenticator(page)
    await enrolPasskey(page, user)
    await until(async () => (await page.evaluate('counts.sent')) === 1)
    const tap = () => page.getByRole('button', { name: 'Create passkey' }).click()
    await tap()
    expect(await page.evaluate('counts')).toEqual({ created: 1, sent: 1 })
    await page.clock.runFor(10_000)
    await tap()
    await heading(page, 'Save your recovery codes')
    expect(await device.credentials()).toHaveLength(1)
    expect(await eventsOf(user)).toEqual(['user.login', 'user.mfa_enabled'])
    await close()
  },
  120_000,
)

testInChromium(
  'a device that has a passkey for the account says so, and creates no other one',
  async () => {
    const user = await addUser()
    const { page, close } = await openPage()
    const device = await withAuthenticator(page)
    await enrolPasskey(page, user)
    await acceptRecoveryCodes(page)
    await eventsOf(user)
    await page.getByRole('link', { name: 'Add', exact: true }).click()
    await page.getByRole('link', { name: 'Passkey' }).click()
    await page.getByRole('button', { name: 'Create passkey' }).click()
    await page.getByText('This device already has a passkey for your account').waitFor()
    expect(await page.getByText('The passkey request was cancelled').isVisible()).toBe(false)
    expect(await device.credentials()).toHaveLength(1)
    expect(await eventsOf(user)).toEqual([])
    await close()
  },
  120_000,
)

testInChromium(
  'a recovery code lets its owner in once',
  async () => {
    const user = await addUser()
    const { page, close } = await openPage()
    const { codes } = await enrolApp(page, user)
    await eventsOf(user)
    for (const works of [true, false]) {
      await page.context().clearCookies()
      await open(page)
      await signIn(page, user)
      await page.getByRole('link', { name: 'Use a recovery code' }).click()
      await page.getByLabel('Recovery code').fill(codes[0] ?? '')
      await page.getByRole('button', { name: 'Continue' }).click()
      if (works) expect((await atClient(page)).has('code')).toBe(true)
      else expect(await page.getByRole('alert').textContent()).toContain('unused recovery codes')
    }
    expect(await eventsOf(user)).toEqual([
      'user.first_factor_proven',
      'user.first_factor_proven',
      'user.login_failed',
    ])
    await close()
  },
  120_000,
)

testInChromium(
  'a client asks for a passkey: a stronger step on top of what is there',
  async () => {
    const user = await addUser()
    const { page, close } = await openPage()
    const device = await withAuthenticator(page)
    await open(page)
    await signIn(page, user)
    await declineOffer(page)
    await atClient(page)
    await open(page, { acr_values: 'phr', prompt: 'none' })
    expect((await atClient(page)).get('error')).toBe('interaction_required')
    await open(page, { acr_values: 'phr' })
    await heading(page, 'Add a passkey')
    await page.getByRole('button', { name: 'Create passkey' }).click()
    await acceptRecoveryCodes(page)
    expect((await atClient(page)).has('code')).toBe(true)
    expect(await device.credentials()).toHaveLength(1)
    await open(page, { acr_values: 'phr', prompt: 'none' })
    expect((await atClient(page)).has('code')).toBe(true)
    expect(await eventsOf(user)).toEqual(['user.mfa_enabled'])
    await close()
  },
  120_000,
)

testInChromium(
  'a person chooses a new password by a mailed link, and verifies the email address by another link',
  async () => {
    const user = await addUser()
    const { page, close } = await openPage()
    await open(page)
    await page.getByRole('link', { name: 'Forgot password?' }).click()
    await page.getByLabel('Username or email').fill(user.email)
    await page.getByRole('button', { name: 'Send link' }).click()
    expect(await page.getByRole('status').textContent()).toContain('sent an email to its address')
    expect(await eventsOf(user)).toEqual([])
    await page.goto(await post.linkIn('Choose a new password'))
    await page.getByLabel('New password', { exact: true }).fill(NEW)
    await page.getByRole('button', { name: 'Save password' }).click()
    await heading(page, 'Your account')
    expect(await eventsOf(user)).toEqual(['user.password_changed', 'user.login'])
    await post.linkIn('Your password for Gatehouse was changed')

    await page.goto(`${server.url}/account/profile`)
    await page.getByRole('button', { name: 'Send verification email' }).click()
    await page.getByRole('status').waitFor()
    await page.goto(await post.linkIn('Confirm your email address'))
    await page.getByRole('button', { name: 'Confirm address' }).click()
    await page.getByText('Email address confirmed').waitFor()
    expect(await eventsOf(user)).toEqual(['user.updated'])
    expect((await server.admin('GET', `/users/${user.id}`)).body.email_verified).toBe(true)
    await close()
  },
  120_000,
)

testInChromium(
  'own pages: profile, names of factors, new codes, removal, data, applications',
  async () => {
    const user = await addUser()
    const { page, close } = await openPage()
    await enrolApp(page, user)
    await eventsOf(user)

    await page.getByText('Rename').click()
    await page.getByLabel('New name').fill('Work phone')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Work phone').first().waitFor()
    await page.locator('summary', { hasText: 'Get new codes' }).click()
    await page.getByRole('button', { name: 'Get new codes' }).click()
    await acceptRecoveryCodes(page)
    expect(await eventsOf(user)).toEqual(['user.updated', 'user.updated'])

    await page.getByRole('link', { name: 'Profile' }).click()
    await page.getByLabel('First name').fill('Ada')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Your changes are saved').waitFor()
    expect(await eventsOf(user)).toEqual(['user.updated'])

    await page.getByRole('link', { name: 'Data' }).click()
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download' }).click(),
    ])
    expect(file.suggestedFilename()).toBe(`${user.username}.json`)
    await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download' }).click()])

    await page.getByRole('link', { name: 'Security' }).click()
    await page.locator('summary', { hasText: 'Remove' }).click()
    await page.getByText('You will be signed out everywhere else').waitFor()
    await page.getByRole('button', { name: 'Remove Work phone' }).click()
    await page.getByText('Sign-in method removed').waitFor()
    expect(await eventsOf(user)).toEqual(['user.mfa_disabled'])
    await page.getByRole('link', { name: 'Applications' }).click()
    await page.getByText('No applications').waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await heading(page, 'You’re signed out')
    expect(await eventsOf(user)).toEqual(['user.logout'])
    await close()
  },
  120_000,
)
