import { inflateRawSync } from 'node:zlib'
import { certify } from '#test/support/saml/certificate.ts'
import {
  encode,
  type IdentityProvider,
  makeIdentityProvider,
  newPair,
} from '#test/support/saml/identity-provider.ts'
import { ordinary } from '#test/support/saml/response-parts.ts'
import { type Connection, fromNewNetwork, get, header, post } from './connection.ts'
import { authorizePath, nextStep, REDIRECT_URI, type Target } from './target.ts'

const ALIAS = 'bench-idp'
const ISSUER = 'https://idp.example/metadata'

type Create = (path: string, body: Record<string, unknown>) => Promise<unknown>

/** Registers an identity provider for which the benchmark has the private key. */
export const addSamlProvider = async (create: Create): Promise<IdentityProvider> => {
  const pair = newPair()
  const provider = makeIdentityProvider(await certify(pair), pair)
  await create('/identity-providers', {
    type: 'saml',
    alias: ALIAS,
    name: 'Bench',
    entity_id: ISSUER,
    sso_url: 'https://idp.example/sso',
    certificates: [provider.certificate],
  })
  return provider
}

/**
 * Returns a function that runs a login without earlier cookies. The browser goes to the provider, returns
 * with the signed assertion, and gets a code.
 */
export const samlLogin = (
  target: Target,
  provider: IdentityProvider,
  connection: Connection,
): (() => Promise<void>) => {
  const acs_path = `/saml/${ALIAS}/acs`
  const origin = `http://localhost:${target.process.port}`
  const query = new URL(authorizePath(target, target.es256.client_id), origin).search
  return async () => {
    const network = fromNewNetwork()
    const away = await connection.send(get(`/saml/${ALIAS}/login${query}`, network))
    const browser = { ...network, cookie: header(away.head, 'set-cookie')?.split(';', 1)[0] ?? '' }
    const { searchParams } = new URL(header(away.head, 'location') ?? '', origin)
    const request = inflateRawSync(Buffer.from(searchParams.get('SAMLRequest') ?? '', 'base64'))
    const said = ordinary({
      issuer: ISSUER,
      audience: `${origin}/saml/${ALIAS}/metadata`,
      acs_url: origin + acs_path,
      request_id: /\bID="([^"]+)"/.exec(request.toString())?.[1],
      now: Date.now(),
    })
    let answer = await connection.send(
      post(
        acs_path,
        {
          SAMLResponse: encode(provider.respond(said)),
          RelayState: searchParams.get('RelayState') ?? '',
        },
        network,
      ),
    )
    for (let url = origin + acs_path; ; ) {
      const { status, head, body } = answer
      const location = header(head, 'location')
      if (location?.startsWith(REDIRECT_URI)) return
      if (status >= 400) throw new Error(`Expected a login, got ${head}\n\n${body.slice(0, 1000)}`)
      const [next, form] = nextStep(location, body, url)
      const { pathname, search } = new URL(next)
      const path = pathname + search
      answer = await connection.send(form ? post(path, form, browser) : get(path, browser))
      url = next
    }
  }
}
