import type { Kind } from './kinds.ts'

/** A registered client, as `gatehouse client create --json` prints it. */
export interface Application {
  issuer: string
  discovery_url: string
  client_id: string
  /** Absent for public clients. */
  client_secret?: string
  kind: Kind
  organization: string
  redirect_uris: string[]
  post_logout_redirect_uris: string[]
  web_origins: string[]
  scopes: string[]
  authorization_endpoint: string
  token_endpoint: string
  userinfo_endpoint: string
  end_session_endpoint: string
  token_endpoint_auth_method: string
}

/** Returns the configuration values of a client. */
export const applicationOf = (
  issuer: string,
  client: Pick<
    Application,
    | 'kind'
    | 'client_id'
    | 'redirect_uris'
    | 'post_logout_redirect_uris'
    | 'web_origins'
    | 'scopes'
    | 'token_endpoint_auth_method'
  >,
  organization: string,
  secret?: string,
): Application => ({
  issuer,
  discovery_url: `${issuer}/.well-known/openid-configuration`,
  client_id: client.client_id,
  ...(secret && { client_secret: secret }),
  kind: client.kind,
  organization,
  redirect_uris: client.redirect_uris,
  post_logout_redirect_uris: client.post_logout_redirect_uris,
  web_origins: client.web_origins,
  scopes: client.scopes,
  authorization_endpoint: `${issuer}/oauth/authorize`,
  token_endpoint: `${issuer}/oauth/token`,
  userinfo_endpoint: `${issuer}/oauth/userinfo`,
  end_session_endpoint: `${issuer}/oauth/logout`,
  token_endpoint_auth_method: client.token_endpoint_auth_method,
})

/** A configuration example for one library or framework. */
export interface Snippet {
  /** The text above the code. It names the library or program that the code is for. */
  title: string
  language: 'js' | 'json' | 'sh'
  code: string
}

/** Returns the scopes that a program asks for, without `offline_access`: refresh tokens do not need it. */
const wanted = ({ scopes }: Application): string[] => scopes.filter(scope => scope !== 'offline_access')

/** True for an issuer with plain http. Libraries refuse such an issuer unless an option allows it. */
const isPlain = ({ issuer }: Application): boolean => issuer.startsWith('http:')

/** Returns the last line of a program. The line exports the values with these names. */
const exporting = (names: string): string => `export { ${names} }`

/** Returns a JavaScript string in single quotes. Scopes and URIs may contain such quotes. */
const quoted = (text = ''): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`

const web = (application: Application): Snippet => ({
  title:
    'login.mjs for openid-client 6 on Node, Bun and Deno. Save it in a folder of its own and run\n`npm install --prefix . openid-client` there. login.mjs reads CLIENT_SECRET from the environment. The\nserver that uses login.mjs is in `gatehouse guide connect`. This is login.mjs:',
  language: 'js',
  code: `import * as client from 'openid-client'

const { CLIENT_SECRET } = process.env
if (!CLIENT_SECRET) throw new Error('Set CLIENT_SECRET to the secret.')

const redirect_uri = ${quoted(application.redirect_uris[0])}
const config = await client.discovery(
  new URL(${quoted(application.issuer)}),
  ${quoted(application.client_id)},
  CLIENT_SECRET,${
    isPlain(application)
      ? `
  undefined,
  { execute: [client.allowInsecureRequests] }, // plain http: on this machine only`
      : ''
  }
)

/** Returns the login URL. Stores two values in the session. */
const startLogin = async session => {
  const verifier = client.randomPKCECodeVerifier()
  const state = client.randomState()
  Object.assign(session, { verifier, state })
  return client.buildAuthorizationUrl(config, {
    redirect_uri,
    scope: ${quoted(wanted(application).join(' '))},
    state,
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  })
}

/** Takes the URL of the callback; returns the claims of the user. */
const finishLogin = async (url, session) => {
  const tokens = await client.authorizationCodeGrant(config, new URL(url), {
    pkceCodeVerifier: session.verifier,
    expectedState: session.state,
  })
  return { user: tokens.claims(), id_token: tokens.id_token }
}

/** Returns the URL that also ends the login at the issuer. */
const startLogout = session =>
  client.buildEndSessionUrl(config, {
    id_token_hint: session.id_token,${
      application.post_logout_redirect_uris[0]
        ? `
    post_logout_redirect_uri: ${quoted(application.post_logout_redirect_uris[0])},`
        : ''
    }
  })

${exporting('finishLogin, startLogin, startLogout')}`,
})

const spa = (application: Application): Snippet => {
  const insecure = isPlain(application)
  const options = insecure ? ', options' : ''
  return {
    title: 'oauth4webapi 3 in the browser:',
    language: 'js',
    code: `import * as oauth from 'oauth4webapi'

const issuer = new URL(${quoted(application.issuer)})
const client = { client_id: ${quoted(application.client_id)} }
const redirect_uri = ${quoted(application.redirect_uris[0])}
${
  insecure
    ? `const options = { [oauth.allowInsecureRequests]: true } // plain http: on this machine only
`
    : ''
}const server = await oauth.processDiscoveryResponse(
  issuer,
  await oauth.discoveryRequest(issuer${options}),
)

/** Redirects to the login page. */
const startLogin = async () => {
  const verifier = oauth.generateRandomCodeVerifier()
  const state = oauth.generateRandomState()
  sessionStorage.setItem('login', JSON.stringify({ verifier, state }))
  const url = new URL(server.authorization_endpoint)
  url.search = new URLSearchParams({
    ...client,
    redirect_uri,
    response_type: 'code',
    scope: ${quoted(wanted(application).join(' '))},
    state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  })
  location.assign(url)
}

/** On the page of redirect_uri: returns the claims of the user, and an access token. */
const finishLogin = async () => {
  const { verifier, state } = JSON.parse(sessionStorage.getItem('login'))
  sessionStorage.removeItem('login')
  const answer = oauth.validateAuthResponse(server, client, new URL(location), state)
  const tokens = await oauth.processAuthorizationCodeResponse(
    server,
    client,
    await oauth.authorizationCodeGrantRequest(
      server, client, oauth.None(), answer, redirect_uri, verifier${options},
    ),
  )
  return { claims: oauth.getValidatedIdTokenClaims(tokens), token: tokens.access_token }
}

${exporting('finishLogin, startLogin')}`,
  }
}

const native = (application: Application): Snippet => {
  const { issuer, client_id: clientId } = application
  const [redirectUrl] = application.redirect_uris
  const settings = { issuer, clientId, redirectUrl, scopes: wanted(application), usePKCE: true }
  return {
    title: 'Settings of AppAuth for React Native; AppAuth for iOS and Android takes the same values:',
    language: 'json',
    code: JSON.stringify(settings, null, 2),
  }
}

/** Returns a text as one word of a shell command. Scopes may contain single quotes. */
const word = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/**
 * In the curl command the secret is in the form, which the server accepts from every service. The option `-u`
 * does not form-urlencode the secret, so one with `+` or `%` would be refused:
 * https://www.rfc-editor.org/rfc/rfc6749#section-2.3.1
 */
const service = ({ issuer, client_id, token_endpoint, scopes }: Application): Snippet[] => [
  {
    title: 'curl, with the secret in the environment variable CLIENT_SECRET:',
    language: 'sh',
    code: [
      `curl -s ${token_endpoint} -d client_id=${encodeURIComponent(client_id)} \\`,
      '  --data-urlencode "client_secret=$CLIENT_SECRET" \\',
      `  -d grant_type=client_credentials${scopes.length > 0 ? ` --data-urlencode scope=${word(scopes.join(' '))}` : ''}`,
    ].join('\n'),
  },
  {
    title: '@gatehouse/resource-server, which renews the token:',
    language: 'js',
    code: `import { createServiceClient } from '@gatehouse/resource-server/client'

const service = createServiceClient({
  issuer: ${quoted(issuer)},
  clientId: ${quoted(client_id)},
  clientSecret: process.env.CLIENT_SECRET,
})

// await service.fetch('https://api.example.com/orders')
${exporting('service')}`,
  },
]

/**
 * Returns the code or settings for an application. The code for a service requests a token. The code for any
 * other application signs users in.
 */
export const snippets = (application: Application): Snippet[] =>
  ({ web: [web], spa: [spa], native: [native], service: [service] })[application.kind].flatMap(make =>
    make(application),
  )
