/** Fills every form of a login and of the account with input that no person would type. */
import { expect, test } from 'bun:test'
import { createSetUpLink } from '#src/links/links.ts'
import { captureMail } from '#src/mail/captured.ts'
import { startApp } from '#test/support/app.ts'
import { type Browser, type Form, formOf, openBrowser, type Page } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { enrolTotp, linkWith, openEnrolment } from '#test/support/factors.ts'
import { addUser, PASSWORD, signIn, signInLink } from '#test/support/people.ts'

const app = await startApp({}, { mail: captureMail() })
const { status } = await app.admin('PUT', '/organizations/org_default', {
  settings: {
    self_deletion: true,
    user_attributes: [{ name: 'desk', type: 'string', visible: 'user', editable: 'user' }],
  },
})

if (status !== 200) throw new Error(`settings: ${status}`)

/** Fields that a page sends without the user's input. */
const own = ['csrf_token', 'request', 'token', 'credential', 'login', 'organization_id', 'attributes', 'edit']

const wrong = [
  '',
  '   ',
  'a\u0000b',
  'a\u0007\u001bb',
  'a\r\nSet-Cookie: b=c',
  '\u202etxt.exe',
  '\ud800',
  'x'.repeat(10_000),
  '<script>alert(1)</script>',
  "'; DROP TABLE users; --",
  '{{7*7}}<%= 7*7 %>',
]

let made = 0
const person = () => addUser(app, `person${++made}`)
/** Each browser has another network, because the server counts wrong attempts by network. */
const browserOf = (): Browser => openBrowser(app, { ip: `198.51.100.${++made % 250}` })
const signedIn = async (path: string): Promise<[Browser, Page]> => {
  const browser = browserOf()
  await signIn(browser, await browser.get('/account'), (await person()).username)
  return [browser, await browser.get(path)]
}
const opened = async (url: string): Promise<[Browser, Page]> => {
  const browser = browserOf()
  return [browser, await browser.get(url)]
}

interface Tried {
  name: string
  open(): Promise<[Browser, Page]>
  action?: string
}

const forms: Tried[] = [
  { name: 'login', open: () => opened('/account') },
  {
    name: 'forgotten password',
    open: async () => {
      const [browser, page] = await opened('/account')
      return [browser, await browser.get(linkWith(page, 'reset-password'))]
    },
  },
  {
    name: 'sign-in link',
    open: async () => opened(await signInLink(app, (await person()) as { id: string })),
  },
  {
    name: 'invitation',
    open: async () => opened((await create(app, '/invitations', { delivery: 'link' })).invitation_url),
  },
  { name: 'profile', open: () => signedIn('/account/profile'), action: '/account/profile' },
  { name: 'new password', open: () => signedIn('/account/change-password') },
  { name: 'deletion', open: () => signedIn('/account/data'), action: '/account/data/delete' },
  {
    name: 'authenticator app',
    open: async () => {
      const browser = browserOf()
      const choice = await openEnrolment(browser, (await person()).username)
      return [browser, await browser.get(linkWith(choice, 'kind=totp'))]
    },
  },
  {
    name: 'second factor',
    open: async () => {
      const { username } = await person()
      const browser = browserOf()
      await enrolTotp(app, browser, await openEnrolment(browser, username))
      const again = browserOf()
      return [again, await signIn(again, await again.get('/account'), username)]
    },
  },
]

const textsOf = ({ fields }: Form): string[] => Object.keys(fields).filter(name => !own.includes(name))

/** True for JSON with a control character, a bidirectional override or a very long text. */
const isUnfit = (row: string): boolean => ['\\u', '\u202e', 'x'.repeat(256)].some(part => row.includes(part))

const stored = () =>
  app.context.store.read(async q =>
    (await q.select().from(q.tables.users)).map(({ username, email, first_name, last_name, attributes }) =>
      JSON.stringify([username, email, first_name, last_name, attributes]),
    ),
  )

test.each(forms)(
  'PAG-70 the form "$name" answers any text with a page, and stores none',
  async ({ open, action }) => {
    for (const value of wrong) {
      const [browser, shown] = await open()
      // Forms without a text field, such as those for passkeys, are left out.
      const page = { ...shown, forms: shown.forms.filter(form => textsOf(form).length > 0) }
      const fields = textsOf(formOf(page, action))
      expect(fields.length).toBeGreaterThan(0)
      const before = await stored()
      const sent = Object.fromEntries(fields.map(name => [name, value]))
      const answer = await browser.submit(page, sent, action)
      const isPage = [200, 302, 303, 400, 401, 403, 422].includes(answer.status)
      expect([value.slice(0, 20), answer.status, isPage]).toEqual([value.slice(0, 20), answer.status, true])
      expect(answer.html).not.toContain('<script>alert')
      expect(answer.headers.get('set-cookie') ?? '').not.toContain('b=c')
      const after = await stored()
      const broken = after.filter(row => !before.includes(row) && isUnfit(row))
      expect(broken).toEqual([])
    }
  },
)

test('PAG-70 the form of the first administrator', async () => {
  const fresh = await startApp()
  for (const value of wrong) {
    const browser = openBrowser(fresh)
    const page = await browser.get(await createSetUpLink(fresh.context))
    const fields = textsOf(formOf(page))
    const sent = Object.fromEntries(
      fields.map(name => [name, name.startsWith('password') ? PASSWORD : value]),
    )
    expect((await browser.submit(page, sent)).status).toBe(400)
  }
  expect(await fresh.context.store.read(async q => q.select().from(q.tables.users))).toEqual([])
})
