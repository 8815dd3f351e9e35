import { expect } from 'bun:test'
import { verifyRegistration } from '#src/sign-in/passkeys.ts'
import { addProvider, goThrough, startFederated } from '#test/federation/upstream.ts'
import { ADMIN_SECRET, type Json } from '#test/support/app.ts'
import { openBrowser, type Page } from '#test/support/browser.ts'
import { addClient, addUser, authorizeUrl, PASSWORD, REDIRECT } from '#test/support/people.ts'
import { type Answer, fill, worst } from './worst.ts'

/** The maximum sizes that the endpoints accept. */
const FORM = 64 * 1024
const JSON_BODY = 1024 * 1024
const HEADERS = 16 * 1024

const { app, upstream, honest } = await startFederated()
await addUser(app, 'alice')
await addClient(app, 'shop')
const token = await app.tokenOf('gatehouse-admin', ADMIN_SECRET)

/** Returns as many different items as fit into `bytes` bytes. */
const many = (bytes: number, item: (n: number) => string): string[] => {
  const items: string[] = []
  for (let size = 0; size < bytes; size += Buffer.byteLength(items.at(-1) ?? '') + 3)
    items.push(item(items.length))
  return items.slice(0, -1)
}
/** Alternates two classes of combining marks, which normalization has to sort. */
const MARKS = '\u0301\u0323'

const admin = (path: string, body: string): Promise<Response> => {
  // A larger body is refused before it is read, so it would test nothing.
  expect(Buffer.byteLength(body)).toBeLessThanOrEqual(JSON_BODY)
  expect(Buffer.byteLength(body)).toBeGreaterThan(JSON_BODY / 4)
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  return app.call(`/api/v1/admin${path}`, { method: 'POST', headers, body })
}

const good: Record<string, Json> = {
  '/users': {
    username: 'new',
    email: 'new@example.com',
    first_name: 'A',
    last_name: 'B',
    password: PASSWORD,
  },
  '/organizations': { name: 'New', slug: 'new' },
  '/clients': {
    client_id: 'new',
    name: 'New',
    type: 'confidential',
    grant_types: ['client_credentials'],
    scopes: ['read'],
  },
  '/identity-providers': {
    type: 'saml',
    alias: 'new',
    name: 'New',
    entity_id: 'https://idp.example',
    sso_url: 'https://idp.example/sso',
    certificates: ['x'],
  },
  '/roles': { name: 'new', permissions: ['users:read'] },
}
const REST = JSON_BODY - 1024
const half = REST / 2

const bodies: [name: string, path: string, body: string, status: number][] = [
  ['a body of nothing but [', '/users', '['.repeat(JSON_BODY), 400],
  ['an array in an array and so on', '/users', '['.repeat(half) + ']'.repeat(half), 400],
  ['an object in an object and so on', '/users', `${fill('{"a":', half)}1`, 400],
  ['different unknown members', '/users', `{${many(REST, n => `"${n}":1`).join()}}`, 422],
  ['the same member again and again', '/users', `{${fill('"a":1,', REST)}"a":1}`, 422],
  ['one number of a million digits', '/users', `{"username":${'9'.repeat(REST)}}`, 422],
]

const fields: [name: string, path: string, change: Json][] = [
  [
    'attributes of many members',
    '/users',
    { attributes: Object.fromEntries(many(half, String).map(n => [n, 1])) },
  ],
  [
    'attributes of many empty objects',
    '/users',
    { attributes: { a: JSON.parse(`[${fill('{},', REST)}1]`) } },
  ],
  ['an e-mail address of combining marks', '/users', { email: `a@a${fill(MARKS, REST)}` }],
  ['an e-mail address of dots', '/users', { email: `${fill('a.', REST)}a@example.com` }],
  ['an e-mail address of labels', '/users', { email: `a@${fill('ü.', REST)}com` }],
  ['a password of combining marks', '/users', { password: `Aa1!${fill(MARKS, REST)}` }],
  ['a name of combining marks', '/users', { first_name: `a${fill(MARKS, REST)}` }],
  ['a name of blanks', '/users', { first_name: `${' '.repeat(REST)}a` }],
  ['roles without end', '/users', { roles: many(REST, String) }],
  [
    'a domain of combining marks',
    '/organizations',
    { settings: { allowed_domains: [`a${fill(MARKS, REST)}`] } },
  ],
  ['domains without end', '/organizations', { settings: { allowed_domains: many(REST, n => `ü${n}.de`) } }],
  ['CSS of line breaks', '/organizations', { settings: { custom_css: fill('\r\n', half) } }],
  ['a logo that is a long media type', '/organizations', { settings: { logo: `data:${'a'.repeat(REST)}` } }],
  ['redirect URIs without end', '/clients', { redirect_uris: many(REST, n => `https://a/${n}`) }],
  ['one redirect URI', '/clients', { redirect_uris: [`https://a/${'a'.repeat(REST)}`] }],
  ['scopes without end', '/clients', { scopes: many(half, n => `"${n}`) }],
  [
    'certificates without end',
    '/identity-providers',
    { certificates: many(REST, n => `-----BEGIN CERTIFICATE-----${n}`) },
  ],
  [
    'one certificate',
    '/identity-providers',
    { certificates: [`-----BEGIN CERTIFICATE-----\n${'A'.repeat(REST)}\n-----END CERTIFICATE-----`] },
  ],
  ['one permission', '/roles', { permissions: [fill('a:', REST)] }],
]

for (const [name, path, body, status] of bodies) worst(name, [status], () => admin(path, body))
for (const [name, path, change] of fields)
  worst(name, [422], () => admin(path, JSON.stringify({ ...good[path], ...change })))

const PICTURE = 64 * 1024
const uri = (type: string, bytes: Buffer): string => `data:${type};base64,${bytes.toString('base64')}`
const pictures: [name: string, uri: string][] = [
  ['SVG of comments', uri('image/svg+xml', Buffer.from(fill('<!---->', PICTURE)))],
  ['SVG of comments that do not end', uri('image/svg+xml', Buffer.from(fill('<!--', PICTURE)))],
  ['SVG of document types', uri('image/svg+xml', Buffer.from(fill('<!DOCTYPE svg', PICTURE)))],
  [
    'JPEG of fill bytes',
    uri('image/jpeg', Buffer.concat([Buffer.of(0xff, 0xd8), Buffer.alloc(PICTURE - 2, 0xff)])),
  ],
  [
    'JPEG of empty segments',
    uri(
      'image/jpeg',
      Buffer.concat([Buffer.of(0xff, 0xd8), Buffer.alloc(PICTURE - 4, Buffer.of(0xff, 0xe0, 0, 2))]),
    ),
  ],
]
for (const [name, logo] of pictures)
  worst(name, [422], () =>
    app.admin('POST', '/organizations', { ...good['/organizations'], settings: { logo } }),
  )

let networks = 0
const ip = (): string => `198.51.100.${networks++ % 250}`
const post = (path: string, body: string): Promise<Response> => {
  expect(Buffer.byteLength(body)).toBeLessThanOrEqual(FORM)
  expect(Buffer.byteLength(body)).toBeGreaterThan(FORM / 2)
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  return app.call(path, { method: 'POST', headers, body, ip: ip() })
}
const authorization = new URL(authorizeUrl('shop'), REDIRECT).search.slice(1)
const SPACE = FORM - 1024
const forms: [name: string, path: string, body: string, statuses: number[]][] = [
  ['a form of nothing but &', '/oauth/token', '&'.repeat(FORM), [400]],
  ['parameters without end', '/oauth/token', fill('a=&', FORM), [400]],
  ['a form of nothing but +', '/oauth/token', '+'.repeat(FORM), [400]],
  ['broken escapes', '/oauth/token', `a=${'%'.repeat(SPACE)}`, [400]],
  [
    'a token of dots',
    '/oauth/introspect',
    `client_id=shop&client_secret=x&token=${'.'.repeat(SPACE)}`,
    [401],
  ],
  [
    'scopes without end, at the authorization endpoint',
    '/oauth/authorize',
    `${authorization}&scope=${fill('a+', SPACE)}`,
    [302, 400],
  ],
  [
    'languages without end',
    '/oauth/authorize',
    `${authorization}&ui_locales=${fill('a-b+', SPACE)}`,
    [302, 303],
  ],
  ['one language', '/oauth/authorize', `${authorization}&ui_locales=${fill('a-', SPACE)}`, [302, 303]],
  [
    'a login hint of combining marks',
    '/oauth/authorize',
    `${authorization}&login_hint=${fill(MARKS, SPACE)}`,
    [302, 303],
  ],
]
for (const [name, path, body, statuses] of forms) worst(name, statuses, () => post(path, body))

const signIn = async (fields: Record<string, string>): Promise<Page> => {
  const browser = openBrowser(app, { ip: ip() })
  const page = await browser.get(authorizeUrl('shop'))
  const { action = '' } = /action="(?<action>[^"]*)"/.exec(page.html)?.groups ?? {}
  const csrf_token = /name="csrf_token" value="([^"]*)"/.exec(page.html)?.[1] ?? ''
  const raw = Object.entries({ csrf_token, username: 'alice', password: 'x', ...fields })
  return browser.post(action.replaceAll('&amp;', '&'), raw.map(pair => pair.join('=')).join('&'))
}
worst('a user name of combining marks, by a stranger', [401], () =>
  signIn({ username: `a${fill(MARKS, SPACE)}` }),
)
worst('a password of combining marks, by a stranger', [401], () =>
  signIn({ password: `a${fill(MARKS, SPACE)}` }),
)
worst('a user name of dots', [401], () => signIn({ username: `${fill('a.', SPACE)}@a.de` }))

const headers: [name: string, path: string, headers: Record<string, string>, status: number][] = [
  ['cookies without end', '/account', { cookie: ';'.repeat(HEADERS) }, 200],
  ['Accept-Language of subtags', '/account', { 'accept-language': fill('a-', HEADERS) }, 200],
  ['Accept-Language of weights', '/account', { 'accept-language': fill('a;q=1,', HEADERS) }, 200],
  ['a bearer token of dots', '/oauth/userinfo', { authorization: `Bearer ${'.'.repeat(HEADERS)}` }, 401],
  [
    'blanks before a bearer token',
    '/oauth/userinfo',
    { authorization: `Bearer${' '.repeat(HEADERS)}x` },
    401,
  ],
  [
    'a bearer token of our header and a long payload',
    '/api/v1/admin/users',
    { authorization: `Bearer ${token.split('.', 1)[0]}.${'a'.repeat(HEADERS)}.a` },
    401,
  ],
]
for (const [name, path, given, status] of headers)
  worst(name, [status], () => app.call(path, { headers: given }))

const queries: [name: string, query: string, status: number][] = [
  ['the same query parameter again and again', fill('limit=1&', HEADERS), 422],
  ['query parameters without end', many(HEADERS, n => `${n}=`).join('&'), 422],
  ['a cursor of dots', `cursor=${'.'.repeat(HEADERS)}`, 400],
  ['a search of combining marks', `search=${encodeURIComponent(fill(MARKS, HEADERS / 3))}`, 422],
  ['a search of 256 wildcards', `search=${'%25'.repeat(256)}`, 200],
]
for (const [name, query, status] of queries)
  worst(name, [status], () =>
    app.call(`/api/v1/admin/users?${query}`, { headers: { authorization: `Bearer ${token}` } }),
  )

let providers = 0
/** Signs in through a separate provider, whose answers `change` corrupts. */
const atProvider = async (change: () => void): Promise<Page> => {
  const alias = `up-${providers++}`
  await addProvider(app, alias)
  honest()
  change()
  return goThrough(openBrowser(app, { ip: ip() }), upstream, `/oauth/social/${alias}`)
}
const document = (path: string, body: string) => () => {
  expect(Buffer.byteLength(body)).toBeLessThanOrEqual(JSON_BODY)
  const answer = () => new Response(body, { headers: { 'content-type': 'application/json' } })
  upstream.intercept = request => (request.url.endsWith(path) ? answer() : undefined)
}
/** Returns a function that makes the provider publish the keys that `change` returns. */
const keys = (change: (key: Json) => Json[]) => () => {
  upstream.publish = ([key]) => change(key)
}
const rsa = (n: number, e: number) => ({
  kty: 'RSA',
  n: Buffer.alloc(n, 0xff).toString('base64url'),
  e: Buffer.alloc(e, 0xff).toString('base64url'),
})
const asRsa = (n: number, e: number) => () => {
  keys(({ kid }) => [{ ...rsa(n, e), kid, alg: 'RS256', use: 'sig' }])()
  upstream.twist = draft => Object.assign(draft.header, { alg: 'RS256' })
}
const upstreams: [name: string, change: () => void][] = [
  ['a key set of nothing but [', document('/jwks', '['.repeat(JSON_BODY))],
  [
    'userinfo of nothing but [',
    () => {
      document('/userinfo', '['.repeat(JSON_BODY))()
      upstream.twist = ({ claims }) => void delete claims.email
    },
  ],
  ['a token answer of nothing but [', document('/token', '['.repeat(JSON_BODY))],
  ['a key set of 5,000 keys of one id', keys(key => Array.from({ length: 5_000 }, () => key))],
  [
    'a key set of 5,000 other keys',
    keys(key => Array.from({ length: 5_000 }, (_, n) => ({ ...key, kid: `${n}` }))),
  ],
  ['an RSA key of 16,384 bits and as many of exponent', asRsa(2_048, 2_048)],
  ['an RSA key of five million bits', asRsa(600_000, 3)],
]
for (const [name, change] of upstreams) worst(name, [400], () => atProvider(change))

worst('discovery of nothing but [', [502], async () => {
  await addProvider(app, 'lost')
  document('/.well-known/openid-configuration', '['.repeat(JSON_BODY))()
  return openBrowser(app).get('/oauth/social/lost')
})

const ATTESTATION = 32_768
const attest = async (cbor: Buffer): Promise<Answer> => {
  const clientDataJSON = JSON.stringify({
    type: 'webauthn.create',
    challenge: 'c',
    origin: app.context.config.url,
  })
  const attestationObject = cbor.toString('base64url')
  expect(attestationObject.length).toBeLessThanOrEqual(ATTESTATION)
  const json = {
    id: 'AAAA',
    rawId: 'AAAA',
    type: 'public-key',
    clientExtensionResults: {},
    response: { clientDataJSON: Buffer.from(clientDataJSON).toString('base64url'), attestationObject },
  }
  const verified = await verifyRegistration(app.context, JSON.stringify(json), 'c')
  return { status: verified ? 200 : 400 }
}
const CBOR = (ATTESTATION / 4) * 3 - 1024
const text = (value: string): Buffer => Buffer.concat([Buffer.of(0x60 + value.length), Buffer.from(value)])
const packed = (x5c: Buffer): Buffer =>
  Buffer.concat([
    Buffer.of(0xa3),
    ...[text('fmt'), text('packed'), text('attStmt')],
    ...[Buffer.of(0xa1), text('x5c'), x5c, text('authData')],
    ...[Buffer.of(0x58, 37), Buffer.alloc(37)],
  ])
const attestations: [name: string, cbor: Buffer][] = [
  ['CBOR of arrays in arrays', Buffer.alloc(CBOR, 0x81)],
  ['CBOR of maps in maps', Buffer.alloc(CBOR, Buffer.of(0xa1, 0x00))],
  ['CBOR of tags in tags', Buffer.alloc(CBOR, 0xc1)],
  [
    'CBOR that announces 2^32 - 1 items',
    Buffer.concat([Buffer.of(0x9a, 0xff, 0xff, 0xff, 0xff), Buffer.alloc(CBOR)]),
  ],
  [
    'CBOR of 20,000 empty certificates',
    packed(Buffer.concat([Buffer.of(0x99, 0x4e, 0x20), Buffer.alloc(20_000, 0x40)])),
  ],
]
// The library is loaded with the first passkey.
await attest(Buffer.of(0))
for (const [name, cbor] of attestations) worst(name, [400], () => attest(cbor))
