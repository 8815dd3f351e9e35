import { generateKeyPairSync } from 'node:crypto'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort, freshDirectory, type ServerProcess, start } from './server-process.ts'
import { authorizePath, type BenchClient, logIn, REDIRECT_URI, type Target } from './target.ts'

/**
 * npm package of a Node.js that has node:sqlite. The Node.js of a Linux distribution may lack this module.
 * npx installs the package outside of the project.
 */
const NODE = 'node@24.21.0'
export const PEER = 'oidc-provider'
const SERVER = fileURLToPath(new URL('./peer-oidc-provider.mjs', import.meta.url))

const paths = {
  discovery: '/.well-known/openid-configuration',
  jwks: '/jwks',
  authorize: '/auth',
  token: '/token',
  introspect: '/token/introspection',
  userinfo: '/me',
}

const secret = 'a-secret-of-the-benchmark-that-is-long-enough'
const es256: BenchClient = { client_id: 'es256', client_secret: secret }
const rs256: BenchClient = { client_id: 'rs256', client_secret: secret }
const service = { client_id: 'service', client_secret: secret, scope: 'read' }

const privateJwk = (kid: string, options: { rsa: boolean }) => {
  const { privateKey } = options.rsa
    ? generateKeyPairSync('rsa', { modulusLength: 2048 })
    : generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { ...privateKey.export({ format: 'jwk' }), kid, use: 'sig', alg: options.rsa ? 'RS256' : 'ES256' }
}

const settings = () => {
  const browser = {
    client_secret: secret,
    redirect_uris: [REDIRECT_URI],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'client_secret_post',
  }
  return {
    jwks: { keys: [privateJwk('es', { rsa: false }), privateJwk('rs', { rsa: true })] },
    clients: [
      { ...browser, client_id: es256.client_id, id_token_signed_response_alg: 'ES256' },
      { ...browser, client_id: rs256.client_id, id_token_signed_response_alg: 'RS256' },
      {
        client_id: service.client_id,
        client_secret: secret,
        redirect_uris: [],
        response_types: [],
        grant_types: ['client_credentials'],
        token_endpoint_auth_method: 'client_secret_post',
        scope: 'read',
      },
    ],
  }
}

/**
 * Returns the path of the Node.js that runs the peer. It comes from npm or is installed on the machine.
 * Returns undefined if neither is available.
 */
export const findNode = async (): Promise<string | undefined> => {
  const ask = (command: string[]) => {
    try {
      const { success, stdout } = Bun.spawnSync(command, { stderr: 'ignore' })
      return success ? stdout.toString().trim() : undefined
    } catch {
      return undefined
    }
  }
  const pinned = ask(['npx', '--yes', `--package=${NODE}`, '--call', 'node -p process.execPath'])
  return pinned ?? ask(['node', '-p', 'require("node:sqlite") && process.execPath'])
}

export const startPeer = async (node: string, directory: string): Promise<ServerProcess> => {
  const port = await freePort()
  const file = join(directory, 'settings.json')
  if (!(await Bun.file(file).exists())) await Bun.write(file, JSON.stringify(settings()))
  return start({
    command: [node, '--no-warnings', SERVER, String(port), join(directory, 'peer.db'), file],
    env: { NODE_ENV: 'production' },
    port,
    directory,
    probe: paths.discovery,
  })
}

export const preparePeer = async (process: ServerProcess): Promise<Target> => {
  const target = { name: PEER, process, paths, es256, rs256, service, introspector: es256 }
  const clients = [es256, rs256].map(({ client_id }) => authorizePath(target, client_id))
  return { ...target, cookie: await logIn(`http://localhost:${process.port}`, clients) }
}

export const peerTarget = async (node: string): Promise<Target> =>
  preparePeer(await startPeer(node, await freshDirectory()))
