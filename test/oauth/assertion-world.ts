/** Creates clients that sign assertions with the keys of their metadata documents. */
import { exportJWK, generateKeyPair, type JWTHeaderParameters, SignJWT } from 'jose'
import type { Config } from '#src/config.ts'
import { SECOND } from '#src/lib/duration.ts'
import { documentWorld, WEB } from '#test/authorize/document-world.ts'
import { BASE, type Json } from '#test/support/app.ts'
import { addUser, VERIFIER } from '#test/support/people.ts'
import { post } from '#test/support/tokens.ts'

export const TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
const pairOf = async (alg: string, kid = alg) => {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  return { alg, kid, privateKey, jwk: { ...(await exportJWK(publicKey)), kid } }
}
type Pair = Awaited<ReturnType<typeof pairOf>>
export const [es, other, rs, ps, ed] = await Promise.all([
  pairOf('ES256'),
  pairOf('ES256', 'other'),
  pairOf('RS256'),
  pairOf('PS256'),
  pairOf('EdDSA'),
])

/** Starts the servers of metadata documents. */
export const assertionWorld = async (config: Partial<Config> = {}) => {
  const world = await documentWorld(config)
  const { app, logIn, publish } = world
  const seconds = () => app.clock.now() / SECOND

  /** Signs an assertion. A claim with the value undefined is left out. */
  const assert = (
    client: Json,
    claims: Json = {},
    { alg, kid, privateKey }: Pair = es,
    header: Partial<JWTHeaderParameters> = {},
  ) =>
    new SignJWT({
      iss: client.client_id,
      sub: client.client_id,
      aud: BASE,
      jti: crypto.randomUUID(),
      exp: seconds() + 300,
      ...claims,
    })
      .setProtectedHeader({ alg, kid, ...header })
      .sign(privateKey)

  const keyed = (more: Json = {}, client_id?: string) =>
    publish(
      { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [es.jwk] }, ...more },
      {},
      client_id,
    )

  let people = 0
  const person = async () => {
    const username = `signer${++people}`
    await addUser(app, username)
    return username
  }

  /** Signs in as a new person and returns the fields that redeem the code. */
  const codeOf = async (client: Json, username?: string, more = {}): Promise<Record<string, string>> => {
    const { answer } = await logIn(client, more, username ?? (await person()))
    return {
      grant_type: 'authorization_code',
      code: answer.code ?? '',
      redirect_uri: WEB,
      code_verifier: VERIFIER,
    }
  }
  const ask = (fields: Json, client_assertion?: string, path = '/oauth/token', ip = nextNetwork()) =>
    post(
      app,
      path,
      { ...fields, ...(client_assertion && { client_assertion, client_assertion_type: TYPE }) },
      { ip },
    )

  let network = 0
  /** Returns a new network for each request, so that earlier refusals do not block the request. */
  const nextNetwork = () => `198.51.${Math.floor(++network / 250)}.${network % 250}`

  return { ...world, seconds, assert, keyed, person, codeOf, ask }
}
