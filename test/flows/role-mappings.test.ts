import { expect, test } from 'bun:test'
import * as openid from 'openid-client'
import { BASE, type Json, startApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { addClient, addUser, signIn } from '#test/support/people.ts'

// The library compares tokens with the clock of the machine.
const start = Date.now()
const app = await startApp({}, { clock: { now: () => start, advance: () => {} } })
const ada = await addUser(app, 'ada', { attributes: { quota: '5 GB', grade: 'Admin' } })
const group = await create(app, '/groups', { name: 'grafana-admins' })
await app.admin('PUT', `/groups/${group.id}/members/${ada.id}`)

const ask: openid.CustomFetch = (url, init) => app.call(url, init as RequestInit)

/**
 * Signs in as the application does. Returns what the application reads: the claims of the ID token and of
 * userinfo.
 */
const claimsFor = async (client: Json, auth: openid.ClientAuth, scope: string, pkce: boolean) => {
  const configuration = await openid.discovery(new URL(BASE), client.client_id, undefined, auth, {
    [openid.customFetch]: ask,
    execute: [openid.allowInsecureRequests],
  })
  configuration[openid.customFetch] = ask
  const verifier = openid.randomPKCECodeVerifier()
  const state = openid.randomState()
  const nonce = openid.randomNonce()
  const url = openid.buildAuthorizationUrl(configuration, {
    redirect_uri: client.redirect_uris[0],
    scope,
    state,
    nonce,
    ...(pkce && {
      code_challenge: await openid.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }),
  })
  const browser = openBrowser(app)
  const { location = '' } = await signIn(browser, await browser.get(url.pathname + url.search), 'ada')
  const tokens = await openid.authorizationCodeGrant(configuration, new URL(location), {
    expectedState: state,
    expectedNonce: nonce,
    pkceCodeVerifier: verifier,
  })
  const id = tokens.claims() as Json
  return { id, userinfo: (await openid.fetchUserInfo(configuration, tokens.access_token, id.sub)) as Json }
}

test('CLM-08 Grafana: groups and roles by role_attribute_path, from the ID token and from userinfo', async () => {
  // [auth.generic_oauth] scopes = openid profile email groups, groups_attribute_path = groups, use_pkce =
  // true. role_attribute_path is either contains(groups[*], 'grafana-admins') && 'Admin' || 'Viewer', or the
  // claim role.
  const client = await addClient(app, 'grafana', {
    redirect_uris: ['https://grafana.example/login/generic_oauth'],
    scopes: ['openid', 'profile', 'email', 'groups'],
    claims: { role: 'user.attributes.grade' },
  })
  const auth = openid.ClientSecretBasic(client.client_secret)
  const { id, userinfo } = await claimsFor(client, auth, 'openid profile email groups', true)
  for (const claims of [id, userinfo])
    expect([claims.groups, claims.role]).toEqual([['grafana-admins'], 'Admin'])
  expect(userinfo).toMatchObject({ email: 'ada@example.com', name: 'Ada Example', preferred_username: 'ada' })
})

test('CLM-08 Nextcloud: groups and quota by --mapping-groups and --mapping-quota, from the ID token', async () => {
  // occ user_oidc:provider --scope="openid email profile groups" --mapping-groups=groups
  // --mapping-quota=quota --mapping-uid=preferred_username --group-provisioning=1
  const client = await addClient(app, 'nextcloud', {
    redirect_uris: ['https://cloud.example/apps/user_oidc/code'],
    scopes: ['openid', 'profile', 'email', 'groups'],
    claims: { quota: 'user.attributes.quota' },
  })
  const auth = openid.ClientSecretPost(client.client_secret)
  const { id } = await claimsFor(client, auth, 'openid email profile groups', true)
  expect(id).toMatchObject({
    ...{ groups: ['grafana-admins'], quota: '5 GB', preferred_username: 'ada', email: 'ada@example.com' },
  })
})
