import { fileURLToPath } from 'node:url'
import { addSamlProvider } from './saml.ts'
import { freePort, freshDirectory, type ServerProcess, start } from './server-process.ts'
import { authorizePath, type BenchClient, logIn, REDIRECT_URI, type Target, USER } from './target.ts'

export const EXECUTABLE = fileURLToPath(new URL('../../dist/gatehouse', import.meta.url))

export const paths = {
  discovery: '/.well-known/openid-configuration',
  jwks: '/.well-known/jwks.json',
  authorize: '/oauth/authorize',
  token: '/oauth/token',
  introspect: '/oauth/introspect',
  userinfo: '/oauth/userinfo',
}

const admin: BenchClient = {
  client_id: 'gatehouse-admin',
  client_secret: 'a-secret-of-the-benchmark-that-is-long-enough',
}

export const METRICS_TOKEN = 'metrics-token-of-the-benchmark'

/**
 * Runs the executable with its default settings. The server trusts a local proxy, so that each login can come
 * from a network of its own.
 */
export const startGatehouse = async (
  directory: string,
  more: Record<string, string> = {},
  executable = EXECUTABLE,
): Promise<ServerProcess> => {
  const port = await freePort()
  return start({
    command: [executable, 'serve'],
    env: {
      GATEHOUSE_PORT: String(port),
      GATEHOUSE_DATA_DIR: directory,
      GATEHOUSE_ADMIN_CLIENT_SECRET: admin.client_secret,
      GATEHOUSE_TRUSTED_PROXIES: '127.0.0.1, ::1',
      GATEHOUSE_METRICS_TOKEN: METRICS_TOKEN,
      ...more,
    },
    port,
    directory,
    probe: paths.discovery,
  })
}

const ask = async (url: string, init: RequestInit): Promise<Record<string, string>> => {
  const response = await fetch(url, { method: 'POST', ...init })
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`)
  return response.json()
}

export const adminTokenOf = async ({ port }: ServerProcess): Promise<string> => {
  const form = { grant_type: 'client_credentials', ...admin }
  const { access_token = '' } = await ask(`http://localhost:${port}${paths.token}`, {
    body: new URLSearchParams(form),
  })
  return access_token
}

/** Creates an object through the admin API. */
export const createAt =
  ({ port }: ServerProcess, admin_token: string) =>
  (path: string, body: Record<string, unknown>) =>
    ask(`http://localhost:${port}/api/v1/admin${path}`, {
      headers: { authorization: `Bearer ${admin_token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })

/** Creates the user and the clients through the admin API, and signs the user in. */
export const prepareGatehouse = async (process: ServerProcess): Promise<Target> => {
  const origin = `http://localhost:${process.port}`
  const admin_token = await adminTokenOf(process)
  const create = createAt(process, admin_token)
  const client = async (client_id: string, more: Record<string, unknown>): Promise<BenchClient> => {
    const { client_secret = '' } = await create('/clients', {
      client_id,
      name: client_id,
      type: 'confidential',
      token_endpoint_auth_method: 'client_secret_post',
      ...more,
    })
    return { client_id, client_secret }
  }
  const browser = {
    grant_types: ['authorization_code', 'refresh_token'],
    scopes: ['openid', 'profile', 'email'],
    redirect_uris: [REDIRECT_URI],
  }

  await create('/users', { ...USER, email: 'bench@example.com', first_name: 'Ben', last_name: 'Ch' })
  const es256 = await client('es256', {
    ...browser,
    id_token_signed_response_alg: 'ES256',
    capabilities: ['token_introspection'],
  })
  const rs256 = await client('rs256', { ...browser, id_token_signed_response_alg: 'RS256' })
  const service = await client('service', { grant_types: ['client_credentials'], scopes: ['read'] })

  const target = {
    name: 'gatehouse',
    process,
    paths,
    es256,
    rs256,
    service: { ...service, scope: 'read' },
    introspector: es256,
    admin_token,
    proves_passwords: true,
    saml: await addSamlProvider(create),
  }
  const clients = [es256, rs256].map(({ client_id }) => authorizePath(target, client_id))
  return { ...target, cookie: await logIn(origin, clients) }
}

export const gatehouseTarget = async (executable?: string): Promise<Target> =>
  prepareGatehouse(await startGatehouse(await freshDirectory(), {}, executable))
