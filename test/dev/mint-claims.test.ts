import { describe, expect, test } from 'bun:test'
import { startGatehouse } from '#src/testing/index.ts'

const ZOE = 'usr_0190a11c-e000-7000-8000-000000000005'
const ORGANIZATION = 'org_0190a11c-e000-7000-8000-000000000009'

const startWithZoe = () =>
  startGatehouse({
    seed: {
      organizations: [{ slug: 'other', id: ORGANIZATION }],
      roles: [{ name: 'editor', organization: 'other', permissions: [] }],
      users: [
        { id: ZOE, username: 'zoe', email: 'zoe@example.com', organization: 'other', roles: ['editor'] },
      ],
    },
  })

describe('dev 7: claims of minted tokens', () => {
  test('an ID token has the claims of the call, also those that only access tokens have by themselves', async () => {
    await using server = await startGatehouse()
    const plain = await server.mint({ user: 'alice', kind: 'id_token' })
    expect(plain.claims).toMatchObject({ azp: 'dev-service', acr: '1', amr: ['pwd'] })
    for (const claim of ['roles', 'jti', 'nbf', 'scope', 'client_id'])
      expect(plain.claims).not.toHaveProperty(claim)
    const wanted = {
      roles: ['editor'],
      jti: 'token-1',
      nbf: 1,
      scope: 'read',
      client_id: 'other',
      nonce: 'n',
    }
    const { claims } = await server.mint({
      user: 'alice',
      kind: 'id_token',
      claims: { ...wanted, amr: null },
    })
    expect(claims).toMatchObject({ ...wanted, azp: 'dev-service' })
    expect(claims).not.toHaveProperty('amr')
  })

  test('an existing user keeps organization and roles in tokens without a session', async () => {
    await using server = await startWithZoe()
    const of = async (options: object) => (await server.mint({ user: ZOE, ...options })).claims
    const org_id = ORGANIZATION.slice(4)
    expect(await of({})).toMatchObject({ org_id, roles: ['editor'] })
    expect(await of({ client_id: 'unknown' })).toMatchObject({ org_id, roles: ['editor'], aud: 'unknown' })
    expect(await of({ client_id: 'unknown', roles: ['owner'] })).toMatchObject({ org_id, roles: ['owner'] })
    expect(await of({ kind: 'id_token' })).toMatchObject({ org_id, preferred_username: 'zoe' })
  })
})
