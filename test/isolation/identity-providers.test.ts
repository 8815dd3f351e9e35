/**
 * Tests that identity providers and webhooks of one organization cannot use up the time or memory that all
 * organizations share.
 */
import 'reflect-metadata'
import { expect, test } from 'bun:test'
import { Extension, X509CertificateGenerator } from '@peculiar/x509'
import type { Context } from '#src/context.ts'
import { defaults } from '#src/directory/identity-providers/settings.ts'
import { findEnabledProviders, readProvider, saveProvider } from '#src/directory/identity-providers/store.ts'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { type Json, noCall, startApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { callerOf, create, refused } from '#test/support/callers.ts'
import { addClient, addOrganization, authorizeUrl } from '#test/support/people.ts'
import { hearStatements } from '#test/support/statements.ts'

const saml = {
  type: 'saml',
  name: 'Corp',
  entity_id: 'https://idp.example',
  sso_url: 'https://idp.example/s',
}
const ES256 = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }

/** Returns a certificate in PEM with an extension of `bytes` bytes. */
const certificateOf = async (bytes: number): Promise<string> => {
  const certificate = await X509CertificateGenerator.createSelfSigned({
    keys: await crypto.subtle.generateKey(ES256, true, ['sign', 'verify']),
    signingAlgorithm: ES256,
    notAfter: new Date(Date.UTC(2040, 0)),
    extensions: [new Extension('1.2.3.4', false, new Uint8Array(bytes))],
  })
  return certificate.toString('pem')
}

test('IDP-10 a certificate has at most 16,384 characters', async () => {
  const app = await startApp()
  const add = async (bytes: number) =>
    app.admin('POST', '/identity-providers', {
      ...saml,
      alias: `of-${bytes}`,
      certificates: [await certificateOf(bytes)],
    })
  expect((await add(11_000)).status).toBe(201)
  expect(refused(await add(13_000))).toEqual(['certificates.0'])
})

test('IDP-10 the certificates of a provider have at most 32,768 characters', async () => {
  const app = await startApp()
  const certificate = await certificateOf(11_500)
  const add = (count: number) =>
    app.admin('POST', '/identity-providers', {
      ...saml,
      alias: `with-${count}`,
      certificates: Array(count).fill(certificate),
    })
  expect((await add(2)).status).toBe(201)
  expect(refused(await add(3))).toEqual(['certificates'])
  expect((await app.admin('GET', '/identity-providers')).body.pagination.total).toBe(1)
})

test('IDP-10 a provider with longer certificates of an earlier version can be changed', async () => {
  const app = await startApp()
  const large = await Promise.all([13_000, 13_001, 13_002].map(certificateOf))
  const { id } = await create(app, '/identity-providers', {
    ...saml,
    alias: 'corp',
    certificates: [await certificateOf(1)],
  })
  const stored = await app.context.store.read(q => readProvider(q, id))
  if (stored?.type !== 'saml') throw new Error('not stored')
  const settings = { ...stored.settings, certificates: large.map(pem => pem.trim()) }
  await app.context.store.write(tx => saveProvider(tx, { ...stored, settings }))
  await app.events()
  const change = async (body: Json) => {
    const answer = await app.admin('PUT', `/identity-providers/${id}`, body)
    const fields = (await app.events()).map(({ metadata }) => metadata.fields)
    const after = await app.context.store.read(q => readProvider(q, id))
    return [answer.status, fields, after?.enabled, after?.settings]
  }
  expect(await change({ enabled: false })).toEqual([200, [['enabled']], false, settings])
  const grown = [...large, large[0]]
  expect(await change({ certificates: grown })).toEqual([422, [], false, settings])
  const fewer = large.slice(1)
  const certificates = fewer.map(pem => pem.trim())
  expect(await change({ certificates: fewer })).toEqual([
    200,
    [['certificates']],
    false,
    { ...settings, certificates },
  ])
})

test('IDP-10 an organization has at most 100 identity providers', async () => {
  const app = await startApp()
  const acme = await addOrganization(app, 'acme')
  const certificates = [await certificateOf(1)]
  const add = (i: number, organization_id: string) =>
    app.admin('POST', '/identity-providers', { ...saml, alias: `of-${i}`, certificates, organization_id })
  for (let i = 0; i < 100; i++) expect((await add(i, acme.id)).status).toBe(201)
  await app.events()
  const { status, body } = await add(100, acme.id)
  expect([status, body.error_description]).toEqual([
    409,
    'The organization already has 100 identity providers, which is the maximum.',
  ])
  expect(await app.events()).toEqual([])
  expect((await app.admin('GET', '/identity-providers')).body.pagination.total).toBe(100)
  expect((await add(100, DEFAULT_ORGANIZATION)).status).toBe(201)
})

test('IDP-05 a certificate without a subject is added and listed', async () => {
  const app = await startApp({}, { fetch: noCall })
  const acme = await addOrganization(app, 'acme')
  const token = await callerOf(app, acme.id, ['identity_providers:create'])
  const body = { ...saml, alias: 'theirs', certificates: [await certificateOf(1)] }
  expect((await app.admin('POST', '/identity-providers', body, token)).status).toBe(201)
  const { status, body: list } = await app.admin('GET', '/identity-providers')
  expect([status, list.data[0].certificates[0].subject]).toEqual([200, ''])
  const tested = await app.admin('GET', '/identity-providers/theirs/connection')
  expect([tested.status, tested.body.checks.map(({ name }: Json) => name)]).toEqual([
    200,
    expect.arrayContaining(['certificate']),
  ])
})

test('IDP-10 the login page reads the providers of its own organization only, without certificates', async () => {
  const heard: string[] = []
  const stop = hearStatements(text => heard.push(text))
  const app = await startApp()
  await addClient(app, 'shop')
  const acme = await addOrganization(app, 'acme')
  const token = await callerOf(app, acme.id, ['identity_providers:create'])
  const certificates = [await certificateOf(1)]
  await app.admin('POST', '/identity-providers', { ...saml, alias: 'theirs', certificates }, token)
  heard.length = 0
  const page = await openBrowser(app).get(authorizeUrl('shop'))
  stop()
  expect(page.status).toBe(200)
  const reads = heard.filter(text => /from "identity_providers"/.test(text))
  expect(reads).toHaveLength(1)
  expect(reads[0]).toMatch(/"organization_id" = /)
  const own = { ...saml, alias: 'own', certificates }
  expect((await app.admin('POST', '/identity-providers', own)).status).toBe(201)
  const providers = await findEnabledProviders(app.context.store, DEFAULT_ORGANIZATION)
  const { entity_id, sso_url } = saml
  expect(providers).toEqual([
    {
      id: expect.any(String),
      alias: 'own',
      name: 'Corp',
      type: 'saml',
      settings: { ...defaults.saml, entity_id, sso_url },
    },
  ])
})

test('IDP-11 documents of metadata and events sent by hand are limited for each organization', async () => {
  let calls = 0
  const fetch: Context['fetch'] = async () => {
    calls++
    return new Response('', { status: 404 })
  }
  const app = await startApp({}, { fetch })
  const acme = await addOrganization(app, 'acme')
  const hook = { name: 'Hook', url: 'https://hook.example/', events: ['user.created'] }
  const [own, other] = [await create(app, '/webhooks', hook), { ...hook, organization_id: acme.id }]
  const theirs = await create(app, '/webhooks', other)
  const [event] = await app.context.store.read(q => q.select().from(q.tables.events).limit(1))
  const send = ({ id }: Json) => app.admin('POST', `/webhooks/${id}/deliveries`, { event_id: event?.id })
  const load = () =>
    app.admin('POST', '/identity-providers', { ...saml, alias: 'corp', metadata_url: 'https://idp.example/' })
  for (let i = 0; i < 30; i++) expect([(await send(own)).status, (await load()).status]).toEqual([201, 422])
  expect(calls).toBe(60)
  for (const { status, body, headers } of [await send(own), await load()])
    expect([status, body.error, headers.get('retry-after')]).toEqual([429, 'rate_limited', '1'])
  expect(calls).toBe(60)
  expect((await send(theirs)).status).not.toBe(429)
  app.clock.advance(1000)
  expect((await send(own)).status).toBe(201)
})
