import { expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { decodeProtectedHeader, jwtVerify } from 'jose'
import type { Outbound } from '#src/context.ts'
import { type Draft, fakeOpenId } from '#src/dev/fake-openid.ts'
import { readProvider, saveProvider } from '#src/directory/identity-providers/store.ts'
import { type Json, START, startApp } from '#test/support/app.ts'
import { openBrowser, type Page } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { addUser } from '#test/support/people.ts'

const APPLE = 'https://appleid.apple.com'
const MICROSOFT = 'https://login.microsoftonline.com/common/v2.0'

/** Lets the fake provider act as the provider of a preset, with the issuer of that provider. */
const play = async (issuer: string, provider: Json, twist: (draft: Draft) => void) => {
  const bodies: URLSearchParams[] = []
  const fake = await fakeOpenId({ issuer, alter: twist })
  const fetch: Outbound = async (url, init) => {
    const request = new Request(url, init as RequestInit)
    if (request.url.endsWith('/token')) bodies.push(new URLSearchParams(await request.clone().text()))
    const answer = await fake.fetch(request)
    if (!request.url.includes('/.well-known/')) return answer
    const metadata = (await answer.json()) as Json
    // Microsoft's document for all tenants has a pattern in place of the issuer.
    const pattern = issuer === MICROSOFT ? { issuer: issuer.replace('common', '{tenantid}') } : {}
    return Response.json({ ...metadata, ...pattern, authorization_response_iss_parameter_supported: false })
  }
  const app = await startApp({}, { fetch })
  await create(app, '/identity-providers', { type: 'oidc', client_id: 'com.example.web', ...provider })
  const arrive = async (who: Record<string, string>, more: Record<string, string> = {}): Promise<Page> => {
    const browser = openBrowser(app)
    const away = new URL((await browser.get(`/oauth/social/${provider.alias}`)).location ?? '')
    const asked = new URLSearchParams(away.searchParams)
    asked.delete('response_mode')
    const form = new URLSearchParams({ request: String(asked), decision: 'approve', ...who })
    const answer = await fake.fetch(new Request(`${issuer}/authorize`, { method: 'POST', body: form }))
    const back = new URL(answer.headers.get('location') ?? '')
    back.searchParams.delete('iss')
    if (away.searchParams.get('response_mode') !== 'form_post')
      return browser.follow(await browser.get(back.pathname + back.search))
    const posted = new URLSearchParams({ ...Object.fromEntries(back.searchParams), ...more })
    return browser.follow(await browser.post(back.pathname, String(posted), { origin: issuer }))
  }
  return { app, bodies, arrive }
}

test('Apple: form_post, a secret signed for each exchange, the name from the form', async () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { app, bodies, arrive } = await play(
    APPLE,
    {
      preset: 'apple',
      alias: 'apple',
      name: 'Apple',
      client_secret: privateKey.export({ format: 'pem', type: 'pkcs8' }),
      team_id: 'TEAM123456',
      key_id: 'KEY1234567',
      trust_email: true,
    },
    ({ claims }) => Object.assign(claims, { email_verified: 'true' }),
  )
  const who = { sub: '001.apple', email: 'x@privaterelay.example', name: '' }
  const user = JSON.stringify({
    name: { firstName: 'Johnny', lastName: 'Appleseed' },
    email: 'forged@example.com',
  })
  const page = await arrive(who, { user })
  expect(page.heading).toBe('Your account')
  const users = (await app.admin('GET', '/users?search=appleseed')).body.data
  expect(users).toMatchObject([
    { email: 'x@privaterelay.example', email_verified: true, first_name: 'Johnny' },
  ])
  const secret = bodies[0]?.get('client_secret') ?? ''
  expect(decodeProtectedHeader(secret)).toEqual({ alg: 'ES256', kid: 'KEY1234567' })
  const { payload } = await jwtVerify(secret, publicKey, { currentDate: new Date(START) })
  expect(payload).toEqual({
    iss: 'TEAM123456',
    sub: 'com.example.web',
    aud: APPLE,
    iat: START / 1000,
    exp: START / 1000 + 300,
  })
})

test('IDP-12 Apple: a private key that was stored without its ids is not sent', async () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const client_secret = privateKey.export({ format: 'pem', type: 'pkcs8' })
  const ids = { team_id: 'TEAM123456', key_id: 'KEY1234567' }
  const provider = { preset: 'apple', alias: 'apple', name: 'Apple', client_secret, ...ids }
  const { app, bodies, arrive } = await play(APPLE, provider, () => {})
  const stored = await app.context.store.read(q => readProvider(q, 'apple'))
  if (stored?.type !== 'oidc') throw new Error('not stored')
  const settings = { ...stored.settings, team_id: '' }
  await app.context.store.write(tx => saveProvider(tx, { ...stored, settings, updated_at: START + 1 }))
  expect((await arrive({ sub: '001.apple', email: 'x@example.com', name: 'X' })).status).toBe(400)
  const { body } = await app.admin('GET', '/identity-providers/apple/connection')
  expect(body.checks).toContainEqual(expect.objectContaining({ name: 'credentials', status: 'bad' }))
  expect(bodies).toEqual([])
})

test('Microsoft: the issuer is that of the user’s tenant, and no address counts as verified', async () => {
  const tid = '9188040d-6c67-4c5b-b112-36a304b66dad'
  const { app, arrive } = await play(
    MICROSOFT,
    { preset: 'microsoft', alias: 'ms', name: 'Microsoft', client_secret: 's', trust_email: true },
    ({ claims }) =>
      Object.assign(claims, { iss: MICROSOFT.replace('common', tid), tid, email_verified: true }),
  )
  await addUser(app, 'satya')
  expect((await arrive({ sub: 'ms-1', email: 'new@example.com', name: 'New' })).heading).toBe('Your account')
  expect((await arrive({ sub: 'ms-2', email: 'satya@example.com', name: 'S' })).heading).toBe('Is this you?')
})
