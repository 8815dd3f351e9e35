/** Cases of the places of a token in a request, of the returned claims, and of the rules of a route. */
import { ok, deepStrictEqual as same } from 'node:assert/strict'
import type { Rules } from '#src/resource-server/index.ts'
import { accepted, type Case, dead, ISSUER, NOW, REALM, refused } from './world.ts'

export const rights: Case[] = [
  {
    name: 'SDK-11 the claims are exposed under their wire names, everything else in raw',
    async run({ issuer, route }) {
      const ask = await route()
      const { raw, ...claims } = accepted(await ask(await issuer.token({ tenant: 'blue' })))
      same(claims, {
        sub: '0192d3a4-5b6c-7d8e-9f00-112233445566',
        email: 'alice@example.test',
        name: 'Alice Example',
        roles: ['user'],
        scope: 'openid',
        org_id: 'default',
        iss: ISSUER,
        aud: 'test-client',
        exp: NOW + 3600,
        iat: NOW,
      })
      same([raw.tenant, raw.preferred_username], ['blue', 'alice'])
    },
  },
  {
    name: 'the name falls back to preferred_username; a service has neither name nor e-mail nor roles',
    async run({ issuer, route }) {
      const ask = await route()
      const names = { given_name: undefined, family_name: undefined }
      same(accepted(await ask(await issuer.token(names))).name, 'alice')
      same(accepted(await ask(await issuer.token({ given_name: 'Al', family_name: '' }))).name, 'Al')
      const service = {
        ...names,
        preferred_username: undefined,
        email: undefined,
        roles: undefined,
        scope: undefined,
      }
      const { name, email, roles, scope } = accepted(
        await ask(await issuer.token({ ...service, org_id: undefined })),
      )
      same([name, email, roles, scope], [undefined, undefined, [], ''])
    },
  },
  {
    name: 'extraction: absent, empty and other schemes are no token',
    async run({ route }) {
      const ask = await route()
      refused(await ask(), 'token_missing')
      refused(await ask({ authorization: '' }), 'token_missing')
      refused(await ask({ authorization: 'Basic YTpi' }), 'token_missing')
      refused(await ask({ authorization: 'Bearertoken' }), 'token_missing')
      refused(await ask({ 'x-authorization': 'Bearer e30.e30.e30' }), 'token_missing')
    },
  },
  {
    name: 'extraction: the scheme in any case, one token, nothing else',
    async run({ issuer, route }) {
      const ask = await route()
      const token = await issuer.token()
      for (const scheme of ['Bearer', 'bearer', 'BEARER', 'Bearer  ']) {
        accepted(await ask({ authorization: `${scheme} ${token}` }))
      }
      for (const value of [
        'Bearer',
        `Bearer ${token} x`,
        `Bearer "${token}"`,
        `Bearer ${token}, Bearer ${token}`,
        `Bearer ${token};`,
      ]) {
        refused(await ask({ authorization: value }), 'token_malformed')
      }
    },
  },
  {
    name: 'SDK-09 roles requires all roles of the list; anyRole requires one of them, so an empty list refuses every token',
    async run({ issuer, route }) {
      const clerk = await issuer.token({ roles: ['user', 'clerk'] })
      const status = async (rules: Rules) => (await (await route({ rules }))(clerk)).status
      same(await status({ roles: ['clerk'] }), 200)
      same(await status({ roles: ['user', 'clerk'] }), 200)
      same(await status({ roles: ['user', 'admin'] }), 403)
      same(await status({ roles: ['cler'] }), 403)
      same(await status({ anyRole: ['admin', 'clerk'] }), 200)
      same(await status({ anyRole: ['admin', 'CLERK'] }), 403)
      same(await status({ anyRole: [] }), 403)
      const { body, challenge } = await (await route({ rules: { roles: ['admin'] } }))(clerk)
      same([body.error, body.code, body.status, challenge], ['forbidden', 'forbidden', 403, null])
    },
  },
  {
    name: 'SDK-10 scopes: all of them, else 403 insufficient_scope naming them',
    async run({ issuer, route }) {
      const token = await issuer.token({ scope: 'orders:readonly orders:write' })
      accepted(await (await route({ rules: { scopes: ['orders:write', 'orders:readonly'] } }))(token))
      const reply = await (await route({ rules: { scopes: ['orders:read', 'orders:write'] } }))(token)
      same(
        [reply.status, reply.body.error, reply.body.code],
        [403, 'insufficient_scope', 'insufficient_scope'],
      )
      ok(reply.challenge?.startsWith(`${REALM}, error="insufficient_scope", `), `${reply.challenge}`)
      ok(reply.challenge?.endsWith(', scope="orders:read orders:write"'), `${reply.challenge}`)
      for (const scope of ['a', ''])
        same((await (await route({ rules: { scopes: [''] } }))(await issuer.token({ scope }))).status, 403)
    },
  },
  {
    name: 'SDK-06 a bad token is 401 before any role or scope is looked at',
    async run({ issuer, route }) {
      const ask = await route({ rules: { roles: ['admin'], scopes: ['orders'] } })
      refused(await ask(await issuer.badToken('expired')), 'token_expired')
      refused(await ask(), 'token_missing')
    },
  },
  {
    name: 'SDK-07 optional: no token passes without claims, a good token passes with claims, a bad token is 401',
    async run({ issuer, route }) {
      const ask = await route({ rules: { optional: true, roles: ['user'] } })
      same(accepted(await ask()), null)
      same(accepted(await ask({ authorization: 'Basic YTpi' })), null)
      same(accepted(await ask(await issuer.token())).name, 'Alice Example')
      refused(await ask(await issuer.badToken('expired')), 'token_expired')
      refused(await ask({ authorization: 'Bearer' }), 'token_malformed')
      same((await ask(await issuer.token({ roles: [] }))).status, 403)
    },
  },
  {
    name: 'optional with onInvalid anonymous: a bad token passes without claims, a token that cannot be checked is 503',
    async run({ issuer, route, verifier }) {
      const rules: Rules = { optional: true, onInvalid: 'anonymous', roles: ['user'] }
      const ask = await route({ rules })
      same(accepted(await ask(await issuer.badToken('tampered'))), null)
      same(accepted(await ask({ authorization: 'Bearer' })), null)
      same(accepted(await ask(await issuer.token())).name, 'Alice Example')
      same((await ask(await issuer.token({ roles: [] }))).status, 403)
      issuer.intercept = dead
      refused(await (await route({ rules, verifier: verifier() }))(await issuer.token()), 'jwks_unavailable')
    },
  },
  {
    name: 'SDK-08 own handlers replace 401 and 403, and nothing else',
    async run({ issuer, route }) {
      const ask = await route({ ownHandlers: true, rules: { scopes: ['orders'] } })
      const handled = async (token?: string) => {
        const { status, body } = await ask(token)
        return [status, body.handled]
      }
      same(await handled(), [418, 'token_missing'])
      same(await handled(await issuer.badToken('expired')), [418, 'token_expired'])
      same(await handled(await issuer.token()), [418, 'insufficient_scope'])
      accepted(await ask(await issuer.token({ scope: 'orders' })))
      issuer.intercept = dead
      refused(await (await route({ ownHandlers: true }))(await issuer.token()), 'jwks_unavailable')
    },
  },
  {
    name: 'no refusal repeats what was sent',
    async run({ issuer, route }) {
      const ask = await route()
      for (const token of [
        await issuer.token({ iss: 'https://marker.example', sub: 'marker' }),
        await issuer.token({ aud: 'marker' }),
        await issuer.token({}, { kid: 'marker' }),
        await issuer.token({}, { typ: 'marker' }),
      ]) {
        const { body, challenge } = await ask(token)
        ok(!JSON.stringify([body, challenge]).includes('marker'), JSON.stringify([body, challenge]))
      }
    },
  },
]
