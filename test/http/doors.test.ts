import { beforeEach, expect, test } from 'bun:test'
import { cookieNames } from '#src/http/cookies.ts'
import { type ChargeKind, charge } from '#src/http/rate-limits.ts'
import type { AppError } from '#src/lib/app-error.ts'
import { captureMail } from '#src/mail/captured.ts'
import { addSaml, certifiedProvider, post as postAcs } from '#test/federation/saml/world.ts'
import { addProvider, ISSUER } from '#test/federation/upstream.ts'
import { startApp } from '#test/support/app.ts'
import { type Browser, openBrowser, type Page } from '#test/support/browser.ts'
import { addClient, addOrganization, addUser, authorizeUrl, logInTo } from '#test/support/people.ts'

type Tenant = 'a' | 'b'

const metadata = {
  issuer: ISSUER,
  authorization_endpoint: `${ISSUER}/authorize`,
  token_endpoint: `${ISSUER}/token`,
  jwks_uri: `${ISSUER}/jwks`,
}
const app = await startApp({}, { mail: captureMail(), fetch: async () => Response.json(metadata) })
const idp = await certifiedProvider()
const organizations = { a: await addOrganization(app, 'tenant-a'), b: await addOrganization(app, 'tenant-b') }
for (const [slug, { id: organization_id }] of Object.entries(organizations)) {
  await addClient(app, `web-${slug}`, { organization_id })
  await addProvider(app, `social-${slug}`, { organization_id, client_id: slug })
  await addSaml(app, idp, `saml-${slug}`, { organization_id, sign_requests: false })
  await addUser(app, `user-${slug}`, { organization_id })
}

const DEVICE = cookieNames(app.context.config).device
/** Returns the device cookie of a browser in which a user of the tenant has signed in. */
const deviceOf = async (tenant: Tenant): Promise<string> => {
  const browser = openBrowser(app)
  await logInTo(browser, `web-${tenant}`, `user-${tenant}`)
  return browser.cookies.get(DEVICE) ?? ''
}

const pages = new Map<string, Promise<{ browser: Browser; page: Page }>>()
/** Opens the login page once for each address, tenant and device. Returns the page and its browser. */
const loginPage = (ip: string, tenant: Tenant, device?: string) => {
  const open = async () => {
    const browser = openBrowser(app, { ip })
    if (device) browser.cookies.set(DEVICE, device)
    return { browser, page: await browser.get(authorizeUrl(`web-${tenant}`)) }
  }
  const key = `${ip} ${tenant} ${device}`
  const known = pages.get(key) ?? open()
  pages.set(key, known)
  return known
}
const get = (path: string, ip: string, device?: string) =>
  app.call(path, { ip, ...(device && { headers: { cookie: `${DEVICE}=${device}` } }) })
const form = (path: string, fields: Record<string, string>, ip: string) =>
  app.call(path, { method: 'POST', body: new URLSearchParams(fields), ip })
let names = 0
const wrong = (tenant: Tenant) => ({ client_id: `web-${tenant}`, client_secret: 'wrong' })

interface Door {
  /** Number of requests from one network that are served before a refusal. */
  served: number
  /** The kinds of work for which a request is charged. */
  kinds: (keyof typeof RESERVED)[]
  /** True for an endpoint to which browsers send their cookies. */
  isForBrowsers?: true
  ask(ip: string, tenant: Tenant, device?: string): Promise<{ status: number }>
}

/** All doors: endpoints that do work for unauthenticated clients. */
const doors: Record<string, Door> = {
  'GET /oauth/authorize': {
    served: 1_000,
    kinds: ['commit'],
    isForBrowsers: true,
    ask: (ip, tenant, device) => get(authorizeUrl(`web-${tenant}`), ip, device),
  },
  'POST /oauth/authorize': {
    served: 1_000,
    kinds: ['commit'],
    ask: (ip, tenant) => {
      const { searchParams } = new URL(authorizeUrl(`web-${tenant}`), 'http://x')
      return form('/oauth/authorize', Object.fromEntries(searchParams), ip)
    },
  },
  'GET /account': {
    served: 1_000,
    kinds: ['commit'],
    isForBrowsers: true,
    ask: (ip, tenant, device) => get(`/account?organization=tenant-${tenant}`, ip, device),
  },
  'GET /oauth/social/{alias}': {
    served: 1_000,
    kinds: ['outbound', 'commit'],
    isForBrowsers: true,
    ask: (ip, tenant, device) => get(`/oauth/social/social-${tenant}`, ip, device),
  },
  'GET /saml/{alias}/login': {
    served: 1_000,
    kinds: ['signature', 'commit'],
    isForBrowsers: true,
    ask: (ip, tenant, device) => get(`/saml/saml-${tenant}/login`, ip, device),
  },
  'POST /oauth/login': {
    served: 50,
    kinds: ['hash'],
    ask: async (ip, tenant) => {
      const { browser, page } = await loginPage(ip, tenant)
      return browser.submit(page, { username: `nobody${++names}`, password: 'wrong' }, '/oauth/login')
    },
  },
  'POST /oauth/passkey': {
    served: 50,
    kinds: ['commit'],
    isForBrowsers: true,
    ask: async (ip, tenant, device) => {
      const { browser, page } = await loginPage(ip, tenant, device)
      return browser.submit(page, { credential: `{"id":"${++names}"}` }, '/oauth/passkey')
    },
  },
  'POST /oauth/reset-password': {
    served: 20,
    kinds: ['mail'],
    isForBrowsers: true,
    ask: async (ip, tenant, device) => {
      const { browser, page } = await loginPage(ip, tenant, device)
      const [path = ''] = /\/oauth\/reset-password\?request=[\w-]+/.exec(page.html) ?? []
      // A device cookie lifts the limits of the network only for the user of this cookie.
      const username = device ? `user-${tenant}` : `nobody${++names}`
      return browser.submit(await browser.get(path), { username })
    },
  },
  'GET /oauth/social/{alias}/callback': {
    served: 30,
    kinds: ['outbound', 'commit'],
    isForBrowsers: true,
    ask: (ip, tenant, device) => get(`/oauth/social/social-${tenant}/callback?state=x&code=y`, ip, device),
  },
  'POST /saml/{alias}/acs': {
    served: 30,
    kinds: ['xml', 'commit'],
    ask: (ip, tenant) => postAcs(app, `saml-${tenant}`, { SAMLResponse: 'x', RelayState: 'y' }, ip),
  },
  'POST /oauth/token': {
    served: 30,
    kinds: ['commit'],
    ask: (ip, tenant) => form('/oauth/token', { grant_type: 'client_credentials', ...wrong(tenant) }, ip),
  },
  'POST /oauth/introspect': {
    served: 30,
    kinds: ['commit'],
    ask: (ip, tenant) => form('/oauth/introspect', { token: 'x', ...wrong(tenant) }, ip),
  },
}

/** Counts the consecutive requests that are not refused, up to `most`. */
const servedOf = async ({ ask }: Door, ip: string, tenant: Tenant, most: number) => {
  for (let count = 0; count < most; count++) if ((await ask(ip, tenant)).status === 429) return count
  return most
}

/**
 * Requests from many networks use up the organization's budget for this kind of work. A new network still has
 * its reserved units, and other organizations still have their whole budgets.
 */
const exhaust = (kind: ChargeKind, tenant: Tenant) => {
  for (let i = 0; i < 2_000; i++)
    try {
      const ip_address = `10.${kind.length}.${i >> 8}.${i & 255}`
      for (;;) charge(app.context, { ip_address, organization_id: organizations[tenant].id, kind })
    } catch (error) {
      expect((error as AppError).status).toBe(429)
    }
}

/** Uses up the network's budget for this kind of work. */
const spend = (kind: ChargeKind, ip_address: string, tenant: Tenant) => {
  expect(() => {
    for (;;) charge(app.context, { ip_address, organization_id: organizations[tenant].id, kind })
  }).toThrow()
}

const RESERVED: Record<
  Exclude<ChargeKind, 'stored_post' | 'stored_answer' | 'refusal' | 'registration'>,
  number
> = {
  hash: 10,
  signature: 20,
  commit: 20,
  mail: 3,
  outbound: 20,
  xml: 20,
}

let network = 0
beforeEach(() => {
  network++
  pages.clear()
  app.clock.advance(24 * 3_600_000)
})

for (const [name, door] of Object.entries(doors)) {
  test(`one network at ${name}: ${door.served} are served; another network and another tenant are served`, async () => {
    expect(await servedOf(door, `198.51.100.${network}`, 'a', door.served + 5)).toBe(door.served)
    expect(await servedOf(door, `203.0.113.${network}`, 'a', 15)).toBe(15)
    expect(await servedOf(door, `192.0.2.${network}`, 'b', 15)).toBe(15)
  }, 30_000)

  if (door.isForBrowsers)
    test(`H-23 ${name}: a device on which a user of the organization signed in is served when its network is blocked`, async () => {
      const [known, foreign] = [await deviceOf('a'), await deviceOf('b')]
      const ip = `198.51.100.${network}`
      // If the endpoint takes a form, each device has to open the login page before the network is blocked.
      for (const device of [known, foreign, 'made-up']) await door.ask(ip, 'a', device)
      if (door.served < 1_000) await servedOf(door, ip, 'a', door.served)
      for (const kind of door.kinds) spend(kind, ip, 'a')
      const statuses: number[] = []
      for (const device of [undefined, foreign, 'made-up'])
        statuses.push((await door.ask(ip, 'a', device)).status)
      expect(statuses).toEqual([429, 429, 429])
      expect((await door.ask(ip, 'a', known)).status).not.toBe(429)
    })

  for (const kind of door.kinds)
    test(`many networks at ${name} (${kind}): a new one has its reserve, another tenant all of its own`, async () => {
      // A form is posted from a login page. Opening this page uses one of the network's reserved commits.
      const isForm = /POST .*(login|passkey|reset)/.test(name)
      if (isForm)
        await Promise.all([loginPage(`203.0.113.${network}`, 'a'), loginPage(`192.0.2.${network}`, 'b')])
      exhaust(kind, 'a')
      const reserved = RESERVED[kind] - (isForm && kind === 'commit' ? 1 : 0)
      expect(await servedOf(door, `203.0.113.${network}`, 'a', reserved + 1)).toBe(
        Math.min(reserved, door.served),
      )
      const more = Math.min(reserved + 5, door.served)
      expect(await servedOf(door, `192.0.2.${network}`, 'b', more)).toBe(more)
    }, 30_000)
}
