/** Tests the metadata that clients of the Model Context Protocol read before a login. */
import { expect, test } from 'bun:test'
import { BASE, startApp } from '#test/support/app.ts'

const app = await startApp()
const paths = ['/.well-known/oauth-authorization-server', '/.well-known/openid-configuration']

const namesOfNull = (value: unknown, path = ''): string[] =>
  value === null
    ? [path]
    : typeof value === 'object'
      ? Object.entries(value).flatMap(([name, member]) => namesOfNull(member, `${path}.${name}`))
      : []

test('MCP-01 both documents have the issuer, PKCE, the code flow, public clients and iss', async () => {
  for (const path of paths) {
    const answer = await app.call(path)
    expect([answer.status, answer.headers.get('content-type')]).toEqual([
      200,
      'application/json; charset=utf-8',
    ])
    const document = await answer.json()
    expect(document).toMatchObject({
      issuer: BASE,
      code_challenge_methods_supported: ['S256'],
      response_types_supported: ['code'],
      grant_types_supported: expect.arrayContaining(['authorization_code', 'refresh_token']),
      token_endpoint_auth_methods_supported: expect.arrayContaining(['none']),
      authorization_response_iss_parameter_supported: true,
    })
    expect(namesOfNull(document)).toEqual([])
    expect(document.issuer).not.toEndWith('/')
  }
})

test('MCP-02 a path of an issuer that does not exist is 404, not a page with 200', async () => {
  for (const path of [
    ...paths.flatMap(known => [`${known}/mcp`, `${known}/a/b`, `${known}/`]),
    '/mcp/.well-known/openid-configuration',
    '/.well-known/oauth-protected-resource',
    '/.well-known/oauth-protected-resource/mcp',
  ]) {
    const answer = await app.call(path, { headers: { accept: 'application/json' } })
    expect([path, answer.status]).toEqual([path, 404])
  }
})

test('MCP-03 preflights allow MCP-Protocol-Version, for metadata documents too', async () => {
  for (const path of [...paths, '/.well-known/jwks.json', '/oauth/token', '/oauth/revoke']) {
    const answer = await app.call(path, {
      method: 'OPTIONS',
      headers: {
        origin: 'https://app.example',
        'access-control-request-method': 'GET',
        'access-control-request-headers': 'mcp-protocol-version',
      },
    })
    const allowed = answer.headers.get('access-control-allow-headers')?.split(', ')
    expect([path, answer.status, allowed]).toEqual([
      path,
      204,
      expect.arrayContaining(['mcp-protocol-version']),
    ])
  }
})

test('MCP-04 only a request for the internal host gets internal endpoints', async () => {
  const contained = await startApp({ internal_url: 'http://gatehouse:8080' })
  await contained.admin('PUT', '/organizations/default', { settings: { client_registration: 'open' } })
  const endpointsFor = async (host: string) => {
    const answer = await contained.call(paths[0] ?? '', { headers: { host } })
    const { issuer, token_endpoint, authorization_endpoint, registration_endpoint } = await answer.json()
    expect([issuer, authorization_endpoint]).toEqual([BASE, `${BASE}/oauth/authorize`])
    expect(answer.headers.get('vary')).toContain('Host')
    return [token_endpoint, registration_endpoint]
  }
  const at = (url: string) => [`${url}/oauth/token`, `${url}/oauth/register`]
  expect(await endpointsFor('gatehouse:8080')).toEqual(at('http://gatehouse:8080'))
  for (const host of ['localhost:8080', 'gatehouse', 'gatehouse:80', 'evil.example'])
    expect(await endpointsFor(host)).toEqual(at(BASE))
})
