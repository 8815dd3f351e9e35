/**
 * Tests on a phone how people open the link in a mail, create an account with a passkey, and reach the
 * application.
 */
import { afterAll, beforeAll, expect } from 'bun:test'
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
import { CHALLENGE } from '#test/support/people.ts'
import { startPostOffice } from '#test/support/post-office.ts'

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }
const site = startClient()
const REDIRECT = `${site.origin}/callback`
const post = await startPostOffice()
let server: Running & AsyncDisposable

beforeAll(async () => {
  server = await serveExecutable(post.settings)
  const client = {
    client_id: 'notes',
    name: 'Orbit Notes',
    type: 'public',
    grant_types: ['authorization_code'],
    scopes: ['openid'],
    redirect_uris: [REDIRECT],
    consent_required: false,
  }
  expect((await server.admin('POST', '/clients', client)).status).toBe(201)
}, 30_000)

afterAll(async () => {
  await closeChromium()
  await server[Symbol.asyncDispose]()
  await site.stop()
  post.close()
})

const openApplication = (page: Page) =>
  page.goto(
    `${server.url}/oauth/authorize?${new URLSearchParams({
      response_type: 'code',
      client_id: 'notes',
      redirect_uri: REDIRECT,
      scope: 'openid',
      code_challenge: CHALLENGE,
      code_challenge_method: 'S256',
    })}`,
  )

const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name }).waitFor()

/** Fills in the person's fields, creates a passkey, and confirms the recovery codes. */
const createAccount = async (page: Page, username: string) => {
  await page.getByLabel('First name').fill('Ada')
  await page.getByLabel('Last name').fill('Roe')
  await page.getByLabel('Username').fill(username)
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByRole('button', { name: 'Create passkey' }).click()
  await heading(page, 'Save your recovery codes')
  await page.getByLabel('I have saved these codes').check()
  await page.getByRole('button', { name: 'Continue' }).click()
}

const atApplication = async (page: Page) => {
  await page.waitForURL(address => address.href.startsWith(REDIRECT))
  return new URL(page.url()).searchParams.has('code')
}

const eventsOf = async (email: string): Promise<string[]> => {
  const { body } = await server.admin('GET', `/users?search=${email}`)
  const { body: events } = await server.admin(
    'GET',
    `/events?target_id=${body.data[0].id}&order=asc&limit=100`,
  )
  return events.data.map(({ type }: Json) => type)
}

testInChromium(
  'PEO-01 an invited person who has only a mail gets into the application, with a passkey, on a phone',
  async () => {
    const email = 'ada@example.com'
    expect((await server.admin('POST', '/invitations', { delivery: 'mail', email })).status).toBe(201)
    const { page, close } = await openPage(PHONE)
    const device = await withAuthenticator(page)
    await page.goto(await post.linkIn('Your invitation'))
    await createAccount(page, 'ada')
    await heading(page, 'Your account')
    await openApplication(page)
    expect(await atApplication(page)).toBe(true)
    expect(await device.credentials()).toHaveLength(1)
    expect(await eventsOf(email)).toEqual(['user.created', 'user.mfa_enabled', 'user.login'])
    await close()
  },
  300_000,
)

testInChromium(
  'PEO-09 a person who registers gets into the application that they came from, with a passkey, on a phone',
  async () => {
    const settings = { registration: 'open' }
    expect((await server.admin('PUT', '/organizations/default', { settings })).status).toBe(200)
    const email = 'eve@example.com'
    const { page, close } = await openPage(PHONE)
    const device = await withAuthenticator(page)
    await openApplication(page)
    await page.getByRole('link', { name: 'Create an account' }).click()
    await page.getByLabel('Email').fill(email)
    await page.getByRole('button', { name: 'Send link' }).click()
    await heading(page, 'Check your email')
    await page.goto(await post.linkIn('Create your account'))
    await createAccount(page, 'eve')
    expect(await atApplication(page)).toBe(true)
    expect(await device.credentials()).toHaveLength(1)
    expect(await eventsOf(email)).toEqual(['user.created', 'user.registered', 'user.mfa_enabled'])
    await close()
  },
  300_000,
)
