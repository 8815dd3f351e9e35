import { generateSync } from 'otplib'
import type { Json, TestApp } from './app.ts'
import { newPasskey } from './authenticator.ts'
import { type Browser, openBrowser, type Page, unescapeHtml } from './browser.ts'
import { create } from './callers.ts'
import { signIn } from './people.ts'

/** Returns the TOTP code for this key now, or `shift` milliseconds from now. */
export const codeOf = (app: Pick<TestApp, 'clock'>, key: string, shift = 0): string =>
  generateSync({ secret: key.replaceAll(' ', ''), epoch: Math.floor((app.clock.now() + shift) / 1000) })

/** Returns the code with the ten digits that begin with `zero`, as keyboards of other scripts enter it. */
export const inDigits = (zero: string, code: string): string =>
  code.replace(/\d/g, digit => String.fromCharCode(zero.charCodeAt(0) + Number(digit)))

/** Returns the key that an enrolment page shows. */
export const keyOf = (page: Page): string => {
  const key = /<code[^>]*>([A-Z2-7 ]+)<\/code>/.exec(page.html)?.[1]
  if (!key) throw new Error(`no key on ${page.url}: ${page.status} ${page.heading}`)
  return key
}

/** Returns the options that a page passes to the browser's credentials API. */
export const optionsOf = (page: Page): Json => {
  const options = /data-options="([^"]*)"/.exec(page.html)?.[1]
  if (!options) throw new Error(`no passkey form on ${page.url}: ${page.status} ${page.heading}`)
  return JSON.parse(unescapeHtml(options))
}

/** Returns the recovery codes that a page shows. */
export const recoveryCodesOf = (page: Page): string[] =>
  [...page.html.matchAll(/<code class="recovery-code">([^<]+)<\/code>/g)].map(([, code = '']) => code)

/** Returns the page's link with this text in its URL. */
export const linkWith = (page: Page, part: string): string => {
  const href = [...page.html.matchAll(/href="([^"]+)"/g)].find(([, address = '']) => address.includes(part))
  if (!href?.[1]) throw new Error(`no link with ${part} on ${page.url}: ${page.heading}`)
  return unescapeHtml(href[1])
}

/** Enrols an authenticator app from the choice of factors. Returns its key and the next page. */
export const enrolTotp = async (app: TestApp, browser: Browser, choice: Page) => {
  const page = choice.heading.includes('authenticator')
    ? choice
    : await browser.get(linkWith(choice, 'kind=totp'))
  const key = keyOf(page)
  const done = await browser.follow(await browser.submit(page, { code: codeOf(app, key) }, '/oauth/enrol'))
  return { key, page: done }
}

/** Enrols a passkey from the choice of factors. Returns the passkey and the next page. */
export const enrolPasskey = async (browser: Browser, choice: Page, passkey = newPasskey()) => {
  const page = choice.html.includes('data-passkey="create"')
    ? choice
    : await browser.get(linkWith(choice, 'kind=passkey'))
  const credential = passkey.create(optionsOf(page))
  const done = await browser.follow(await browser.submit(page, { credential }, '/oauth/enrol'))
  return { passkey, page: done }
}

/** Sends the login page's passkey form. */
export const signInWith = async (
  browser: Browser,
  page: Page,
  passkey: ReturnType<typeof newPasskey>,
  quirks?: Parameters<typeof passkey.get>[1],
): Promise<Page> => {
  const credential = passkey.get(optionsOf(page), quirks)
  return browser.follow(await browser.submit(page, { credential }, '/oauth/passkey'))
}

/** Opens the account page that adds a factor, and signs in if a login page appears instead. */
export const openEnrolment = async (browser: Browser, username: string): Promise<Page> => {
  const page = await browser.get('/account/security/add')
  return page.forms.some(({ action }) => action === '/oauth/login') ? signIn(browser, page, username) : page
}

/** Sends the first form of the page that has the field `field`. */
export const sendForm = (browser: Browser, page: Page, field: string, fields: Record<string, string>) =>
  browser.submit({ ...page, forms: page.forms.filter(form => Object.hasOwn(form.fields, field)) }, fields)

/** Adds a user who has accepted an invitation with a passkey and therefore has no password. */
export const addPasskeyUser = async (app: TestApp, username: string, more: Json = {}) => {
  const { invitation_url, ...user } = await create(app, '/users', {
    username,
    email: `${username}@example.com`,
    first_name: 'Pat',
    last_name: 'Key',
    invite: 'link',
    ...more,
  })
  const browser = openBrowser(app)
  const page = await browser.get(invitation_url)
  const passkey = newPasskey()
  const shown = await sendForm(browser, page, 'credential', { credential: passkey.create(optionsOf(page)) })
  return { user, browser, passkey, codes: recoveryCodesOf(shown) }
}
