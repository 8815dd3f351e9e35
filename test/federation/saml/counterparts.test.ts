import { afterAll, expect, test } from 'bun:test'
import * as client from 'openid-client'
import { BASE, realClock, startApp, type TestApp } from '#test/support/app.ts'
import { type Browser, openBrowser } from '#test/support/browser.ts'
import { needs } from '#test/support/debian.ts'
import { addClient, authorizeUrl, REDIRECT, VERIFIER } from '#test/support/people.ts'
import { XMLSEC } from '#test/support/saml/xmlsec.ts'
import {
  answerAt,
  type Counterpart,
  introduce,
  type Known,
  PYSAML2,
  SIMPLESAML,
  startPysaml2,
  startSimpleSaml,
  type Wanted,
} from './counterparts.ts'
import { startSamlify } from './samlify-provider.ts'
import { post } from './world.ts'

const plain: Wanted[] = [
  { alias: 'assertion', sign_response: false, sign_assertion: true, encrypt: false },
  { alias: 'response', sign_response: true, sign_assertion: false, encrypt: false },
  { alias: 'both', sign_response: true, sign_assertion: true, encrypt: false },
]
/** pysaml2 encrypts with AES-256-GCM. SimpleSAMLphp 1.19 supports only AES-256-CBC. */
const encrypted: Wanted = { alias: 'encrypted', sign_response: true, sign_assertion: true, encrypt: true }

/** Starts an app whose clock shows the real time, because real providers use the real time. */
const startInRealTime = async (): Promise<TestApp> => {
  const app = await startApp({ outbound_allow: ['*=127.0.0.1:*'] }, { clock: realClock })
  await addClient(app, 'web', { client_secret: undefined })
  return app
}

const codeFor = async (
  app: TestApp,
  alias: string,
  who: Record<string, string>,
  browser: Browser,
): Promise<URL> => {
  const away = await browser.get(authorizeUrl('web').replace('/oauth/authorize', `/saml/${alias}/login`))
  if (!away.location) throw new Error(`not away: ${away.status} ${away.heading}`)
  const { action, fields } = await answerAt(away.location, who)
  expect(action).toBe(`${BASE}/saml/${alias}/acs`)
  const stored = await post(app, alias, fields)
  const end = await browser.follow(await browser.get(stored.headers.get('location') ?? ''))
  return new URL(end.location ?? `about:blank?${end.status}`)
}

/** Acts as the application: openid-client reads the discovery document and exchanges the code. */
const exchange = async (app: TestApp, secret: string, callback: URL) => {
  const ask = (url: string, init: object) => app.call(url, init as RequestInit)
  const configuration = await client.discovery(
    new URL(BASE),
    'web',
    undefined,
    client.ClientSecretBasic(secret),
    {
      [client.customFetch]: ask,
      execute: [client.allowInsecureRequests],
    },
  )
  configuration[client.customFetch] = ask
  return client.authorizationCodeGrant(configuration, callback, {
    expectedState: 'xyz',
    pkceCodeVerifier: VERIFIER,
  })
}

const walk = async (
  name: string,
  who: Record<string, string>,
  person: Record<string, string>,
  wanted: Wanted[],
  launch: (parties: Known[]) => Promise<Counterpart>,
): Promise<void> => {
  const prefix = name.toLowerCase()
  const app = await startInRealTime()
  const { client_secret } = (await app.admin('POST', '/clients/web/secret')).body
  const counterpart = await launch(await introduce(app, prefix, wanted))
  afterAll(() => counterpart[Symbol.asyncDispose]())
  const metadata_xml = await (await fetch(counterpart.metadata_url)).text()

  for (const { alias, encrypt } of wanted)
    test(`${encrypt ? 'H-48 ' : ''}S-36 ${name}, ${encrypt ? 'both signed, assertion encrypted' : `${alias} signed`}`, async () => {
      const path = `/identity-providers/${prefix}-${alias}`
      const { status, body } = await app.admin('PUT', path, {
        metadata_xml,
        allow_cbc: encrypt && name === 'SimpleSAMLphp',
      })
      expect([status, body]).toEqual([200, body])
      const callback = await codeFor(app, `${prefix}-${alias}`, who, openBrowser(app))
      expect(`${callback.origin}${callback.pathname}`).toBe(REDIRECT)
      const tokens = await exchange(app, client_secret, callback)
      expect(tokens.claims()).toMatchObject(person)
    }, 60_000)
}

if (needs('simplesamlphp', SIMPLESAML) && needs('php-cli', '/usr/bin/php'))
  await walk(
    'SimpleSAMLphp',
    { username: 'ada', password: 'adapass' },
    { email: 'ada@upstream.example', preferred_username: 'ada', given_name: 'Ada', family_name: 'Lovelace' },
    [...plain, encrypted],
    startSimpleSaml,
  )

if (needs('python3-pysaml2', PYSAML2) && needs('xmlsec1', XMLSEC))
  await walk(
    'pysaml2',
    {},
    {
      email: 'grace@upstream.example',
      preferred_username: 'grace',
      given_name: 'Grace',
      family_name: 'Hopper',
    },
    [...plain, encrypted],
    startPysaml2,
  )

await walk(
  'samlify',
  {},
  { email: 'alan@upstream.example', preferred_username: 'alan', given_name: 'Alan', family_name: 'Turing' },
  [...plain, encrypted],
  startSamlify,
)
