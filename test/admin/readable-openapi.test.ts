/** Checks that people and code generators can read the OpenAPI document. */
import { describe, expect, test } from 'bun:test'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { example } from '#src/http/example.ts'
import { BASE, type Json, startApp } from '#test/support/app.ts'

const now = Date.parse(example.time)
const app = await startApp({}, { clock: { now: () => now, advance: () => {} } })
const source = await (await app.call('/api/v1/openapi.json')).text()
const { paths, tags, components } = JSON.parse(source) as Json
const { schemas, examples } = components
const operations: Json[] = Object.values<Json>(paths).flatMap(methods => Object.values<Json>(methods))

test('API-23 the document is valid OpenAPI, and each example fits its schema', async () => {
  const rules = {
    'no-server-example.com': 'off',
    'no-invalid-media-type-examples': { severity: 'error', allowAdditionalProperties: false },
    'no-unused-components': 'error',
  } as const
  const config = await createConfig({ extends: ['recommended-strict'], rules })
  const problems = await lintFromString({ source, config })
  expect(problems.map(({ message, location }) => [message, location[0]?.pointer])).toEqual([])
})

test('every answer is open, because a later version may add fields', () => {
  const seen = new Set<Json>()
  const closed = (schema: Json, path: string): string[] => {
    if (typeof schema !== 'object' || schema === null || seen.has(schema)) return []
    seen.add(schema)
    const parts = Object.entries<Json>(schema).flatMap(([name, part]) => closed(part, `${path}/${name}`))
    const named = schema.$ref === undefined ? undefined : schemas[String(schema.$ref).split('/').at(-1) ?? '']
    return [...(schema.additionalProperties === false ? [path] : []), ...parts, ...closed(named, schema.$ref)]
  }
  expect(operations.flatMap(({ operationId, responses }) => closed(responses, operationId))).toEqual([])
  expect(seen).toContain(schemas.OrganizationSettings)
})

test('each operation names its permissions, the age of the authentication, and the refusals that it can give', () => {
  const isAt = (path: string, method: string) =>
    app.routes.some(each => each.path === path && each.method === method && (each.read ?? each.body))
  for (const { id, method, path, permission, also, fresh, instance_only, stream, body } of app.routes) {
    const operation = paths[`/api/v1/admin${path.replace(/:(\w+)/g, '{$1}')}`][method.toLowerCase()]
    const { security, description, parameters = [], responses } = operation
    const isConditional = ['PUT', 'DELETE'].includes(method) && isAt(path, 'GET') && isAt(path, 'PUT')
    const [success] = Object.values<Json>(responses)
    expect({
      id,
      security,
      age: operation['x-max-authentication-age'],
      isForInstance: description.includes('a caller of the default organization'),
      takesTag: parameters.some(({ $ref }: Json) => $ref === '#/components/parameters/if-match'),
      refusals: ['408', '412', '413', '415'].filter(status => status in responses),
      isStream: 'text/event-stream' in (success.content ?? {}),
    }).toEqual({
      id,
      security: [{ oauth2: also ? [permission, also] : [permission] }, { bearer: [] }],
      age: fresh ? 300 : undefined,
      isForInstance: Boolean(instance_only),
      takesTag: isConditional,
      refusals: [
        ...(body ? ['408'] : []),
        ...(isConditional ? ['412'] : []),
        ...(body ? ['413', '415'] : []),
      ],
      isStream: Boolean(stream),
    })
  }
  const { authorizationCode } = components.securitySchemes.oauth2.flows
  expect(authorizationCode.authorizationUrl).toBe(`${BASE}/oauth/authorize`)
})

test('API-26 no page may frame the API reference, and browsers ask for a new version', async () => {
  const { headers } = await app.call('/api/v1/docs')
  const { 'x-request-id': _, 'content-security-policy': policy = '', ...others } = headers.toJSON()
  expect(policy).toEndWith("; form-action 'none'; frame-ancestors 'none'")
  expect(others).toEqual({
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-cache',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
  })
})

test('API-24 operation ids are unique and stable', () => {
  expect(operations.map(({ operationId }) => operationId).sort()).toEqual([
    'addGroupMember',
    'approveRegistration',
    'createApi',
    'createClient',
    'createGroup',
    'createIdentityProvider',
    'createInitialAccessToken',
    'createInvitation',
    'createOrganization',
    'createRole',
    'createSignInLink',
    'createUser',
    'createWebhook',
    'deleteApi',
    'deleteClient',
    'deleteGroup',
    'deleteIdentityProvider',
    'deleteOrganization',
    'deleteRememberedBrowser',
    'deleteRememberedBrowsers',
    'deleteRole',
    'deleteUser',
    'deleteUserFactor',
    'deleteUserFactors',
    'deleteWebhook',
    'followEvents',
    'getApi',
    'getClient',
    'getEvent',
    'getGroup',
    'getHealth',
    'getIdentityProvider',
    'getInvitation',
    'getMe',
    'getOrganization',
    'getRole',
    'getSettings',
    'getStatistics',
    'getUser',
    'getWebhook',
    'listAcceptedTerms',
    'listApis',
    'listBackups',
    'listClientLogouts',
    'listClients',
    'listDynamicClients',
    'listEvents',
    'listGroupMembers',
    'listGroups',
    'listIdentityProviders',
    'listInvitations',
    'listKeys',
    'listOrganizations',
    'listRegistrations',
    'listRememberedBrowsers',
    'listRoles',
    'listSessions',
    'listUserApplications',
    'listUserFactors',
    'listUsers',
    'listWebhookDeliveries',
    'listWebhooks',
    'previewLooks',
    'regenerateClientSecret',
    'removeGroupMember',
    'removeUserPicture',
    'replayWebhook',
    'resendInvitation',
    'resetUserPassword',
    'revokeSession',
    'revokeSessions',
    'revokeUserSessions',
    'rotateKeys',
    'rotateWebhookSecret',
    'sendPasswordReset',
    'sendVerification',
    'sendWebhookEvent',
    'startBackup',
    'testIdentityProvider',
    'testLogin',
    'updateApi',
    'updateClient',
    'updateGroup',
    'updateIdentityProvider',
    'updateOrganization',
    'updateRole',
    'updateSettings',
    'updateUser',
    'updateWebhook',
    'withdrawInvitation',
  ])
})

describe('API-25 the OpenAPI document', () => {
  test('each body and answer is a named schema with an example', () => {
    const contents = operations.flatMap(({ requestBody, responses }) =>
      [requestBody, ...Object.values<Json>(responses)].flatMap(each => each?.content ?? []),
    )
    expect(contents.length).toBeGreaterThan(operations.length / 2)
    for (const { 'application/json': json, 'text/event-stream': content = json } of contents) {
      const name = content.schema.$ref.replace('#/components/schemas/', '')
      const variants = schemas[name].oneOf?.map(({ $ref }: Json) => $ref.split('/').at(-1)) ?? [name]
      expect(Object.keys(content.examples)).toEqual(variants)
      expect(Object.keys(examples)).toEqual(expect.arrayContaining(variants))
    }
  })

  test('each schema, field, parameter and tag has a description, and no object is inline', () => {
    for (const [name, schema] of Object.entries<Json>(schemas)) {
      expect([name, schema.description]).toEqual([name, expect.any(String)])
      for (const [field, property] of Object.entries<Json>(schema.properties ?? {})) {
        expect([name, field, JSON.stringify(property)]).not.toContain('"properties"')
        if (property.const || JSON.stringify(property).includes('$ref')) continue
        expect([name, field, property.description]).toEqual([name, field, expect.any(String)])
      }
    }
    const parameters = operations.flatMap(each => each.parameters ?? [])
    for (const { $ref, name, description } of [...parameters, ...Object.values<Json>(components.parameters)])
      if (!$ref) expect([name, description]).toEqual([name, expect.any(String)])
    const named = tags.map(({ name }: Json) => name)
    expect(new Set(operations.flatMap(each => each.tags))).toEqual(new Set(named))
    for (const { description } of tags) expect(description).toEqual(expect.any(String))
  })

  test.each([
    ['/roles', 'Role'],
    ['/users', 'User'],
    ['/groups', 'Group'],
    ['/apis', 'Api'],
    ['/organizations', 'Organization'],
    ['/identity-providers', 'OidcProvider'],
    ['/identity-providers', 'OAuth2Provider'],
    ['/identity-providers', 'SamlProvider'],
  ])('sending the example of %s returns the example of %s', async (path, name) => {
    const created = await app.admin('POST', path, examples[`Create${name}`].value)
    expect(created).toMatchObject({ status: 201, body: { ...examples[name].value, id: created.body.id } })
    const { [`Update${name.replace(/\w+Provider/, 'IdentityProvider')}`]: change } = examples
    const changed = await app.admin('PUT', `${path}/${created.body.id}`, change.value)
    expect(changed.status).toBe(200)
  })

  test('the examples of clients, settings and refusals match real answers too', async () => {
    const { status, body } = await app.admin('POST', '/clients', examples.CreateClient.value)
    const { client_secret } = body
    expect([status, body]).toEqual([201, { ...examples.CreatedClient.value, client_secret }])
    expect((await app.admin('GET', `/clients/${body.client_id}`)).body).toEqual(examples.Client.value)
    const { data } = (await app.admin('GET', '/clients?order=desc')).body
    const listed = data.find(({ client_id }: Json) => client_id === body.client_id)
    expect(listed).toEqual(examples.ClientList.value.data[0])
    expect((await app.admin('GET', '/settings')).body).toEqual(examples.ServerSettings.value)
    const { body: changed } = await app.admin('PUT', '/settings', examples.UpdateServerSettings.value)
    expect(changed).toMatchObject(examples.UpdateServerSettings.value)
    const { email: _, ...user } = examples.CreateUser.value
    const refusal = (await app.admin('POST', '/users', { ...user, username: 'bob' })).body
    expect({ ...refusal, request_id: '' }).toEqual({ ...examples.Error.value, request_id: '' })
  })
})
