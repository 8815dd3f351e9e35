import { Constants, IdentityProvider, SamlLib, ServiceProvider, setSchemaValidator, Utility } from 'samlify'
import { certify } from '#test/support/saml/certificate.ts'
import { newPair } from '#test/support/saml/identity-provider.ts'
import type { Counterpart, Known } from './counterparts.ts'

const { binding, format, authnContextClassRef, statusCode } = Constants.namespace
const { encryption, signature } = Constants.algorithms
const LIFETIME = 300_000

const person = { uid: 'alan', mail: 'alan@upstream.example', givenName: 'Alan', sn: 'Turing' }

/** samlify's default template lacks the AuthnStatement that SAML Profiles 2.0 section 4.1.4.2 requires. */
const loginResponseTemplate = {
  context: SamlLib.defaultLoginResponseTemplate.context.replace(
    '{AuthnStatement}',
    '<saml:AuthnStatement AuthnInstant="{IssueInstant}"><saml:AuthnContext><saml:AuthnContextClassRef>' +
      `${authnContextClassRef.passwordProtectedTransport}</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement>`,
  ),
  attributes: Object.keys(person).map(name => ({
    name,
    valueTag: name,
    nameFormat: 'urn:oasis:names:tc:SAML:2.0:attrname-format:basic',
    valueXsiType: 'xs:string',
  })),
}

/** Returns a page whose script posts these fields. */
const formTo = (action: string, fields: Record<string, string>): Response => {
  const inputs = Object.entries(fields).map(
    ([name, value]) => `<input type="hidden" name="${name}" value="${Bun.escapeHTML(value)}">`,
  )
  const html = `<form method="post" action="${Bun.escapeHTML(action)}">${inputs.join('')}</form>`
  return new Response(html, { headers: { 'content-type': 'text/html' } })
}

/** Runs an identity provider of samlify on loopback, which signs every user in as `alan`. */
export const startSamlify = async (parties: Known[]): Promise<Counterpart> => {
  // samlify requires a schema validator. This validator accepts everything.
  setSchemaValidator({ validate: async () => 'not checked' })
  const pair = newPair()
  const certificate = await certify(pair)
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: request => answer(request) })
  const origin = server.url.origin
  const provider = (encrypt: boolean) => {
    const settings = {
      entityID: `${origin}/metadata`,
      privateKey: pair.privateKey.export({ format: 'pem', type: 'pkcs8' }),
      signingCert: certificate,
      requestSignatureAlgorithm: signature.RSA_SHA256,
      wantAuthnRequestsSigned: true,
      nameIDFormat: [format.persistent],
      singleSignOnService: [{ Binding: binding.redirect, Location: `${origin}/sso` }],
      singleLogoutService: [{ Binding: binding.redirect, Location: `${origin}/slo` }],
      loginResponseTemplate,
      isAssertionEncrypted: encrypt,
      // samlify reads these options, although its types lack them.
      dataEncryptionAlgorithm: encryption.data.AES_128_GCM,
      keyEncryptionAlgorithm: encryption.key.RSA_OAEP_MGF1P,
    }
    return IdentityProvider(settings)
  }

  const answer = async ({ url }: Request): Promise<Response> => {
    const { pathname, search, searchParams } = new URL(url)
    if (pathname === '/metadata') return new Response(provider(false).getMetadata())
    const message = Utility.inflateString(searchParams.get('SAMLRequest') ?? '')
    const asking = parties.find(({ entity_id }) => message.includes(`>${entity_id}<`))
    if (!asking) return new Response('unknown service provider', { status: 400 })
    const { entity_id, encrypt, metadata, sign_assertion, sign_response } = asking
    const idp = provider(encrypt)
    const party = ServiceProvider({
      metadata: metadata.replace(/(?<=WantAssertionsSigned=")\w+/, String(sign_assertion)),
      wantMessageSigned: sign_response,
    })
    const octetString = search.slice(1, search.indexOf('&Signature='))
    const request = { query: Object.fromEntries(searchParams), octetString }
    const { extract } = await idp.parseLoginRequest(party, 'redirect', request)
    const now = Date.now()
    const acs_url = String(party.entityMeta.getAssertionConsumerService('post'))
    const until = new Date(now + LIFETIME).toISOString()
    const id = `_${crypto.randomUUID()}`
    const tags = {
      ID: id,
      AssertionID: `_${crypto.randomUUID()}`,
      IssueInstant: new Date(now).toISOString(),
      Issuer: idp.entityMeta.getEntityID(),
      Destination: acs_url,
      InResponseTo: String(extract.request?.id),
      StatusCode: statusCode.success,
      NameIDFormat: format.persistent,
      NameID: 'alan-persistent-1',
      SubjectRecipient: acs_url,
      SubjectConfirmationDataNotOnOrAfter: until,
      ConditionsNotBefore: new Date(now).toISOString(),
      ConditionsNotOnOrAfter: until,
      Audience: entity_id,
      attrUid: person.uid,
      attrMail: person.mail,
      attrGivenName: person.givenName,
      attrSn: person.sn,
    }
    const { context } = await idp.createLoginResponse(
      party,
      { extract },
      'post',
      {},
      {
        customTagReplacement: template => ({ id, context: SamlLib.replaceTagsByValue(template, tags) }),
        encryptThenSign: encrypt,
      },
    )
    return formTo(acs_url, { SAMLResponse: context, RelayState: searchParams.get('RelayState') ?? '' })
  }

  return { origin, metadata_url: `${origin}/metadata`, [Symbol.asyncDispose]: () => server.stop(true) }
}
