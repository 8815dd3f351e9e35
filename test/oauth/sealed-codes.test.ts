import { beforeEach, describe, expect, test } from 'bun:test'
import { MINUTE } from '#src/lib/duration.ts'
import { masterKey } from '#src/lib/master-key.ts'
import { startApp } from '#test/support/app.ts'
import { answerOf, openBrowser } from '#test/support/browser.ts'
import { addClient, addOrganization, addUser, authorizeUrl, logInTo } from '#test/support/people.ts'
import { restarting } from '#test/support/restarting.ts'
import { addCode, addLogin, claimsOf, redeem, refresh } from '#test/support/tokens.ts'

const app = await startApp()
const alice = await addUser(app, 'alice')
const client = await addClient(app, 'shop')
const other = await addClient(app, 'other')

beforeEach(async () => void (await app.events()))

const invalid = { status: 400, body: { error: 'invalid_grant' } }
const rows = (name: 'authorization_codes' | 'sessions') =>
  app.context.store.read(async q => q.select().from(q.tables[name]))
const long = { nonce: 'n'.repeat(400) }

test('O-73 with an existing login an authorization request writes nothing', async () => {
  const browser = openBrowser(app)
  await logInTo(browser, 'shop', 'alice')
  await app.events()
  const { write } = app.context.store
  app.context.store.write = () => Promise.reject(new Error('a write'))
  const page = await browser.get(authorizeUrl('shop'))
  app.context.store.write = write
  const { code = '' } = answerOf(page)
  expect(code).toMatch(/^[\w-]{1,512}$/)
  expect(await rows('authorization_codes')).toEqual([])
  expect(await app.events()).toEqual([])
  expect((await redeem(app, client, code)).status).toBe(200)
})

test('O-73 a request whose code would be longer than 512 characters gets a stored code', async () => {
  const browser = openBrowser(app)
  await logInTo(browser, 'shop', 'alice')
  const { code = '' } = answerOf(await browser.get(authorizeUrl('shop', long)))
  expect(code).toMatch(/^[\w-]{43}$/)
  const [row, ...more] = await rows('authorization_codes')
  expect(more).toEqual([])
  expect(JSON.stringify(row)).not.toContain(code)
  const { body } = await redeem(app, client, code)
  expect(claimsOf(body.id_token).nonce).toBe(long.nonce)
  expect(await redeem(app, client, code)).toMatchObject(invalid)
  expect(await refresh(app, client, body.refresh_token)).toMatchObject(invalid)
})

describe('O-74 nothing can be read out of a code, and no other text is accepted as one', () => {
  test('its bytes contain no value of the authorization', async () => {
    const login_id = await addLogin(app, alice)
    const code = await addCode(app, client, alice, { login_id, scope: 'openid profile', nonce: 'a-nonce' })
    const bytes = Buffer.from(code, 'base64url')
    const hex = (id: string) => id.replace(/^[a-z]+_/, '').replaceAll('-', '')
    for (const secret of ['shop', 'openid', 'a-nonce', 'pwd', 'https', login_id])
      expect(bytes.includes(secret)).toBe(false)
    for (const id of [login_id, alice.id]) expect(bytes.includes(Buffer.from(hex(id), 'hex'))).toBe(false)
    const again = await addCode(app, client, alice, { login_id, scope: 'openid profile', nonce: 'a-nonce' })
    expect(again.slice(0, 16)).not.toBe(code.slice(0, 16))
  })

  test('each flipped bit, each length, another spelling and another key are refused and change nothing', async () => {
    const code = await addCode(app, client, alice)
    const bytes = Buffer.from(code, 'base64url')
    const flipped = Array.from({ length: bytes.length * 8 }, (_, i) => {
      const copy = Buffer.from(bytes)
      copy[i >> 3] = (copy[i >> 3] ?? 0) ^ (1 << (i & 7))
      return copy.toString('base64url')
    })
    const cut = Array.from({ length: code.length }, (_, i) => code.slice(0, i))
    const spelled = [
      `${code}=`,
      `${code}A`,
      ` ${code}`,
      code.replace(/.$/, last => (last === 'A' ? 'B' : 'A')),
    ]
    const foreign = { ...app, context: { ...app.context, master: masterKey(new Uint8Array(32)) } }
    const forged = await addCode(foreign, client, alice)
    const before = [await rows('sessions'), await rows('authorization_codes')]
    for (const text of [...flipped, ...cut.slice(1), ...spelled, forged])
      expect(await redeem(app, client, text)).toMatchObject(invalid)
    expect([await rows('sessions'), await rows('authorization_codes')]).toEqual(before)
    expect(await app.events()).toEqual([])
    expect((await redeem(app, client, code)).status).toBe(200)
  })

  test.each([
    ['a sealed code', {}],
    ['a stored code', long],
  ])(
    'O-11 %s is refused to another client, also with a wrong verifier, and stays valid for its own',
    async (_, more) => {
      const code = await addCode(app, client, alice, more)
      expect(await redeem(app, other, code)).toMatchObject(invalid)
      expect(await redeem(app, other, code, { code_verifier: 'z'.repeat(43) })).toMatchObject(invalid)
      expect(await app.events()).toEqual([])
      expect((await redeem(app, client, code)).status).toBe(200)
    },
  )

  test('a client that was deleted and registered again gets nothing for earlier codes', async () => {
    const former = await addClient(app, 'phoenix')
    const code = await addCode(app, former, alice)
    await app.admin('DELETE', '/clients/phoenix')
    app.clock.advance(1)
    const next = await addClient(app, 'phoenix')
    expect(await redeem(app, next, code)).toMatchObject(invalid)
  })
})

describe.each([
  ['sealed', {}],
  ['stored', long],
])('O-16 a %s code', (_, more) => {
  test.each([
    ['a wrong verifier', { code_verifier: 'z'.repeat(43) }],
    ['another redirect URI', { redirect_uri: 'https://app.example/other' }],
  ])('%s uses the code up for good', async (_name, wrong) => {
    const code = await addCode(app, client, alice, more)
    expect(await redeem(app, client, code, wrong)).toMatchObject(invalid)
    expect(await redeem(app, client, code)).toMatchObject(invalid)
    expect(await redeem(restarting(app) as typeof app, client, code)).toMatchObject(invalid)
    expect(await app.events()).toEqual([])
  })

  test('O-13 a second use ends the session, with a wrong verifier too, and after a restart', async () => {
    for (const second of [{}, { code_verifier: 'z'.repeat(43) }]) {
      const code = await addCode(app, client, alice, more)
      const { body } = await redeem(app, client, code)
      await app.events()
      expect(await redeem(restarting(app) as typeof app, client, code, second)).toMatchObject(invalid)
      expect((await app.events()).map(({ type }) => type)).toEqual(['session.revoked'])
      expect(await refresh(app, client, body.refresh_token)).toMatchObject(invalid)
    }
  })

  test('O-15 an expired code leaves no row', async () => {
    const code = await addCode(app, client, alice, more)
    const before = await rows('authorization_codes')
    app.clock.advance(MINUTE)
    expect(await redeem(app, client, code)).toMatchObject(invalid)
    expect(await rows('authorization_codes')).toEqual(before)
  })

  test('O-75 it is invalid once its login, user, organization, consent or password is gone', async () => {
    const acme = await addOrganization(app, `acme-${Object.keys(more).length}`)
    const shop = await addClient(app, `acme-shop-${Object.keys(more).length}`, { organization_id: acme.id })
    const person = async (name: string) => addUser(app, name, { organization_id: acme.id })
    const bob = await person('bob')
    const revoked = await addCode(app, shop, bob, more)
    const query = new URLSearchParams({ user_id: bob.id, client_id: shop.client_id })
    expect((await app.admin('DELETE', `/sessions?${query}`)).status).toBe(200)
    expect(await redeem(app, shop, revoked)).toMatchObject(invalid)
    const reset = await addCode(app, shop, bob, more)
    await app.admin('POST', `/users/${bob.id}/reset-password`, { password: 'Another-horse-8' })
    expect(await redeem(app, shop, reset)).toMatchObject(invalid)
    const disabled = await addCode(app, shop, bob, more)
    await app.admin('PUT', `/users/${bob.id}`, { enabled: false })
    expect(await redeem(app, shop, disabled)).toMatchObject(invalid)
    const carol = await person('carol')
    const deleted = await addCode(app, shop, carol, more)
    await app.admin('DELETE', `/users/${carol.id}`)
    expect(await redeem(app, shop, deleted)).toMatchObject(invalid)
    const dora = await person('dora')
    const ownerless = await addCode(app, shop, dora, more)
    await app.admin('DELETE', `/organizations/${acme.id}`)
    expect((await redeem(app, shop, ownerless)).status).toBe(401)
  })

  test('O-75 revocation at one client after another leaves the codes of both invalid', async () => {
    const login_id = await addLogin(app, alice)
    const clients = [client, other]
    const codes = await Promise.all(clients.map(each => addCode(app, each, alice, { ...more, login_id })))
    for (const { client_id } of clients)
      await app.admin('DELETE', `/sessions?${new URLSearchParams({ user_id: alice.id, client_id })}`)
    for (const [i, each] of clients.entries())
      expect(await redeem(app, each, codes[i] ?? '')).toMatchObject(invalid)
  })

  test('O-75 revocation at one client keeps codes of other clients, and codes issued afterwards, valid', async () => {
    const login_id = await addLogin(app, alice)
    const [dead, kept] = [
      await addCode(app, client, alice, { ...more, login_id }),
      await addCode(app, other, alice, { ...more, login_id }),
    ]
    const query = new URLSearchParams({ user_id: alice.id, client_id: 'shop' })
    await app.admin('DELETE', `/sessions?${query}`)
    expect(await redeem(app, client, dead)).toMatchObject(invalid)
    expect((await redeem(app, other, kept)).status).toBe(200)
    const browser = openBrowser(app)
    await logInTo(browser, 'shop', 'alice')
    await app.admin('DELETE', `/sessions?${query}`)
    const { code = '' } = answerOf(await browser.get(authorizeUrl('shop', more)))
    expect((await redeem(app, client, code)).status).toBe(200)
  })
})
