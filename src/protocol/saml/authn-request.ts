import { buildXml } from './build-xml.ts'
import { namespaces, POST_BINDING, RSA_SHA256 } from './names.ts'
import { formatTime } from './time.ts'

/** Values of an authentication request: SAML Core section 3.4.1. */
export interface AuthnRequest {
  /** Random id. It starts with a letter or `_`, because xs:ID requires this. */
  readonly id: string
  /** Milliseconds. */
  readonly issued_at: number
  /** Gatehouse's own entity ID. */
  readonly issuer: string
  readonly acs_url: string
  /** URL of the provider's single sign-on service. */
  readonly destination: string
  /** True when the provider must authenticate the user again (ForceAuthn). */
  readonly force: boolean
}

/**
 * Renders an authentication request. The request names no NameID format, because a provider that does not
 * support the format would refuse the request.
 */
const renderAuthnRequest = (request: AuthnRequest): string =>
  buildXml({
    'samlp:AuthnRequest': {
      '@xmlns:samlp': namespaces.samlp,
      '@xmlns:saml': namespaces.saml,
      '@ID': request.id,
      '@Version': '2.0',
      '@IssueInstant': formatTime(request.issued_at),
      '@Destination': request.destination,
      '@AssertionConsumerServiceURL': request.acs_url,
      '@ProtocolBinding': POST_BINDING,
      ...(request.force && { '@ForceAuthn': 'true' }),
      'saml:Issuer': request.issuer,
      'samlp:NameIDPolicy': { '@AllowCreate': 'true' },
    },
  })

// Uses Bun's deflate, because importing node:zlib adds 10 ms to each start.
const deflate = (text: string): string => Buffer.from(Bun.deflateSync(Buffer.from(text))).toString('base64')

/**
 * Returns the URL of the redirect binding (section 3.4.4.1 of
 * https://docs.oasis-open.org/security/saml/v2.0/saml-bindings-2.0-os.pdf). The signature covers the
 * parameters SAMLRequest, RelayState and SigAlg, encoded as they are sent.
 *
 * @param sign returns the RSA-SHA256 signature in base64; when absent, the request is unsigned
 */
export const redirectUrl = async (
  request: AuthnRequest,
  relay_state: string,
  sign: ((input: string) => string | Promise<string>) | undefined,
): Promise<string> => {
  const query = [
    `SAMLRequest=${encodeURIComponent(deflate(renderAuthnRequest(request)))}`,
    `RelayState=${encodeURIComponent(relay_state)}`,
    ...(sign ? [`SigAlg=${encodeURIComponent(RSA_SHA256)}`] : []),
  ].join('&')
  const signature = await sign?.(query)
  const [address = ''] = request.destination.split('#', 1)
  const separator = address.includes('?') ? '&' : '?'
  return address + separator + query + (signature ? `&Signature=${encodeURIComponent(signature)}` : '')
}
