import { inflateRawSync } from 'node:zlib'
import { attributeOf, parseXml } from '#src/protocol/saml/xml.ts'
import { BASE, type Json, type TestApp } from '#test/support/app.ts'
import { type Browser, openBrowser, type Page } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { certify } from '#test/support/saml/certificate.ts'
import type { Genuine } from '#test/support/saml/genuine.ts'
import {
  encode,
  type How,
  type IdentityProvider,
  makeIdentityProvider,
  newPair,
} from '#test/support/saml/identity-provider.ts'
import { ordinary, type Party, type ResponseContent } from '#test/support/saml/response-parts.ts'
import type { Signing } from '#test/support/saml/sign.ts'

export const ISSUER = 'https://idp.example/metadata'
export const SSO = 'https://idp.example/sso'

/** An identity provider whose certificate can be pinned. */
export const certifiedProvider = async (
  validity?: Parameters<typeof certify>[1],
): Promise<IdentityProvider> => {
  const pair = newPair()
  return makeIdentityProvider(await certify(pair, validity), pair)
}

export const addSaml = (app: TestApp, idp: IdentityProvider, alias: string, more: Json = {}): Promise<Json> =>
  create(app, '/identity-providers', {
    type: 'saml',
    alias,
    name: `The ${alias}`,
    entity_id: ISSUER,
    sso_url: SSO,
    certificates: [idp.certificate],
    ...more,
  })

/** A browser that was redirected to the provider, and the values that the response has to name. */
export interface Trip {
  alias: string
  browser: Browser
  relay_state: string
  party: Party
}

/** Returns Gatehouse's endpoints for the provider with this alias. */
export const partyOf = (app: TestApp, alias: string, request_id?: string): Party => ({
  issuer: ISSUER,
  audience: `${BASE}/saml/${alias}/metadata`,
  acs_url: `${BASE}/saml/${alias}/acs`,
  request_id,
  now: app.clock.now(),
})

/**
 * Starts a login at the provider. `query` begins with `?` and has the parameters of /oauth/authorize or
 * `request=<handle>`.
 */
export const setOut = async (
  app: TestApp,
  alias: string,
  query = '',
  browser = openBrowser(app),
): Promise<Trip> => {
  const away = await browser.get(`/saml/${alias}/login${query}`)
  if (!away.location?.startsWith(SSO))
    throw new Error(`not away: ${away.status} ${away.location ?? away.heading}`)
  const { searchParams } = new URL(away.location)
  const message = inflateRawSync(Buffer.from(searchParams.get('SAMLRequest') ?? '', 'base64')).toString()
  const request_id = attributeOf(parseXml(message), 'ID')
  const relay_state = searchParams.get('RelayState') ?? ''
  return { alias, browser, relay_state, party: partyOf(app, alias, request_id) }
}

/** Posts as the provider's page does: from its origin, without Gatehouse cookies. */
export const post = (
  app: TestApp,
  alias: string,
  fields: Record<string, string> | string,
  ip = '192.0.2.10',
): Promise<Response> =>
  app.call(`/saml/${alias}/acs`, {
    method: 'POST',
    headers: {
      accept: 'text/html',
      origin: 'https://idp.example',
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: typeof fields === 'string' ? fields : new URLSearchParams(fields).toString(),
    ip,
  })

/** Posts the provider's response in the browser of the trip, and returns the final answer. */
export const comeBack = async (
  app: TestApp,
  { alias, browser, relay_state }: Pick<Trip, 'alias' | 'browser' | 'relay_state'>,
  encoded: string,
  ip?: string,
): Promise<Page | Response> => {
  const answer = await post(app, alias, { SAMLResponse: encoded, RelayState: relay_state }, ip)
  const location = answer.headers.get('location')
  return location ? browser.follow(await browser.get(location)) : answer
}

/** Runs an ordinary login from beginning to end. */
export const arrive = async (
  app: TestApp,
  idp: IdentityProvider,
  trip: Trip,
  more: Partial<ResponseContent> = {},
  how: How = 'assertion',
  signing?: Signing,
): Promise<Page> => {
  const page = await comeBack(
    app,
    trip,
    encode(idp.respond({ ...ordinary(trip.party), ...more }, how, signing)),
  )
  if (page instanceof Response) throw new Error(`refused at the door: ${page.status}`)
  return page
}

/** Returns the genuine messages from which the forgeries are made. */
export const genuineFor = (idp: IdentityProvider, party: Party): Genuine => {
  const said = ordinary(party)
  const status = '<samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Responder"/>'
  return {
    get response() {
      return idp.respond(said, 'response')
    },
    get assertion() {
      return idp.respond(said, 'assertion')
    },
    get both() {
      return idp.respond(said, 'both')
    },
    get error() {
      return idp.respond({ ...said, status, assertion: 'none' }, 'response')
    },
  }
}

/** Counts the rows of each table that a login writes to. */
export const rowsOf = (app: TestApp): Promise<Record<string, number>> =>
  app.context.store.read(async q => {
    const { users, logins, sessions, external_accounts } = q.tables
    const tables = { users, logins, sessions, external_accounts }
    const counts = Object.entries(tables).map(async ([name, table]) => [name, await q.$count(table)] as const)
    return Object.fromEntries(await Promise.all(counts))
  })
