import { afterAll, beforeAll, describe, expect } from 'bun:test'
import type { Page } from 'playwright-core'
import type { Json } from '#test/support/app.ts'
import { closeChromium, openPage, startClient, testInChromium } from '#test/support/chromium.ts'
import { type Running, serveExecutable } from '#test/support/executable.ts'
import { CHALLENGE, PASSWORD } from '#test/support/people.ts'

const site = startClient()
const REDIRECT = `${site.origin}/callback`
let server: Running & AsyncDisposable

const made = async (path: string, body: Json): Promise<Json> => {
  const answer = await server.admin('POST', path, body)
  expect(answer.status).toBe(201)
  return answer.body
}

const addUser = (username: string, more: Json = {}): Promise<Json> =>
  made('/users', {
    username,
    email: `${username}@example.com`,
    first_name: username,
    last_name: 'Example',
    password: PASSWORD,
    ...more,
  })

beforeAll(async () => {
  server = await serveExecutable()
  await made('/clients', {
    client_id: 'notes',
    name: 'Orbit Notes',
    type: 'public',
    grant_types: ['authorization_code'],
    scopes: ['openid', 'profile', 'email'],
    redirect_uris: [REDIRECT],
  })
}, 30_000)

afterAll(async () => {
  await closeChromium()
  await server[Symbol.asyncDispose]()
  await site.stop()
})

const open = (page: Page, more: Record<string, string> = {}) =>
  page.goto(
    `${server.url}/oauth/authorize?${new URLSearchParams({
      response_type: 'code',
      client_id: 'notes',
      redirect_uri: REDIRECT,
      scope: 'openid profile',
      state: 'xyz',
      code_challenge: CHALLENGE,
      code_challenge_method: 'S256',
      ...more,
    })}`,
  )

const signIn = async (page: Page, username: string, password = PASSWORD): Promise<void> => {
  await page.getByLabel('Username or email').fill(username)
  await page.getByLabel('Password', { exact: true }).fill(password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
}

const atClient = async (page: Page): Promise<URLSearchParams> => {
  await page.waitForURL(address => address.href.startsWith(REDIRECT))
  return new URL(page.url()).searchParams
}

describe.each([{ javaScriptEnabled: true }, { javaScriptEnabled: false }])('with %o', options => {
  const name = (text: string) => `${text}-${options.javaScriptEnabled ? 'js' : 'plain'}`

  testInChromium(
    'a wrong password says so and keeps the name; then login, consent, code',
    async () => {
      await addUser(name('ada'))
      const { page, close } = await openPage(options)
      await open(page)
      await signIn(page, name('ada'), 'wrong')
      expect(await page.getByRole('alert').textContent()).toContain('is wrong')
      expect(await page.getByLabel('Username or email').inputValue()).toBe(name('ada'))
      expect(await page.getByLabel('Password', { exact: true }).inputValue()).toBe('')
      await signIn(page, name('ada'))
      expect(await page.getByRole('heading', { level: 1 }).textContent()).toContain('Orbit Notes')
      await page.getByRole('button', { name: 'Allow' }).click()
      const answer = await atClient(page)
      expect([...answer.keys()].sort()).toEqual(['code', 'iss', 'state'])

      await open(page)
      expect((await atClient(page)).has('code')).toBe(true)
      await close()
    },
    120_000,
  )

  testInChromium(
    'a person who denies consent goes back with access_denied, and is asked again later',
    async () => {
      await addUser(name('ben'))
      const { page, close } = await openPage(options)
      await open(page)
      await signIn(page, name('ben'))
      await page.getByRole('button', { name: 'Cancel' }).click()
      const answer = await atClient(page)
      expect([answer.get('error'), answer.get('state'), answer.has('code')]).toEqual([
        'access_denied',
        'xyz',
        false,
      ])
      await open(page)
      expect(await page.getByRole('button', { name: 'Allow' }).isVisible()).toBe(true)
      await close()
    },
    120_000,
  )

  testInChromium(
    'the account picker shows every login of the browser',
    async () => {
      await addUser(name('cleo'))
      await addUser(name('dora'))
      const { page, close } = await openPage(options)
      for (const user of ['cleo', 'dora']) {
        await open(page, { prompt: 'login' })
        await signIn(page, name(user))
        await page.getByRole('button', { name: 'Allow' }).click()
        await atClient(page)
      }
      await open(page, { prompt: 'select_account' })
      const accounts = await page.getByRole('button').allInnerTexts()
      expect(accounts.filter(text => /cleo|dora/.test(text))).toHaveLength(2)
      await page
        .getByRole('button', { name: new RegExp(name('cleo')) })
        .first()
        .click()
      expect((await atClient(page)).has('code')).toBe(true)
      await close()
    },
    120_000,
  )

  testInChromium(
    'a temporary password has to be changed before anything is issued',
    async () => {
      const user = await addUser(name('eve'))
      await server.admin('POST', `/users/${user.id}/reset-password`, {
        password: 'Temporary-9-word',
        temporary: true,
      })
      const { page, close } = await openPage(options)
      await open(page)
      await signIn(page, name('eve'), 'Temporary-9-word')
      expect(page.url()).not.toContain(REDIRECT)
      // Without JavaScript the page cannot show the typed password, so it has a second field in which the
      // password is repeated.
      const choose = async (password: string) => {
        await page.getByLabel('New password', { exact: true }).fill(password)
        if (!options.javaScriptEnabled) await page.getByLabel('Repeat new password').fill(password)
      }
      await choose('only-lower-case')
      await page.getByRole('button', { name: 'Save password' }).click()
      await page.getByRole('alert').first().waitFor()
      await choose('Another-Horse-8')
      await page.getByRole('button', { name: 'Save password' }).click()
      await page.getByRole('button', { name: 'Allow' }).click()
      expect((await atClient(page)).has('code')).toBe(true)
      await close()
    },
    120_000,
  )

  testInChromium(
    'keyboard alone is enough, and the account page ends sessions',
    async () => {
      await addUser(name('finn'))
      const { page, close } = await openPage(options)
      await page.goto(`${server.url}/account`)
      await page.locator('input[name=username]:focus').waitFor()
      await page.keyboard.type(name('finn'))
      await page.keyboard.press('Tab')
      while (
        !(await page
          .getByLabel('Password', { exact: true })
          .evaluate(field => field.ownerDocument.activeElement === field))
      )
        await page.keyboard.press('Tab')
      await page.keyboard.type(PASSWORD)
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'Your account' }).waitFor()
      await page.getByRole('button', { name: 'Sign out' }).first().click()
      await page.getByRole('heading', { name: 'Your account' }).waitFor({ state: 'detached' })
      await page.goto(`${server.url}/account`)
      await page.getByLabel('Username or email').waitFor()
      await close()
    },
    120_000,
  )
})
