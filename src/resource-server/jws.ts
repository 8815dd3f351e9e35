import { type CompactJWSHeaderParameters, compactVerify, errors } from 'jose'
import { AccessError, InvalidSignatureError, TokenMalformedError, TokenMissingError } from './errors.ts'
import { findKey, parseKeyName } from './keys.ts'
import type { ResolvedOptions } from './options.ts'

/**
 * Maximum length of a token in characters. Node and Bun accept 16 KiB of headers by default. A longer token
 * is refused before it is parsed.
 */
const MAX_LENGTH = 15 * 1024

/**
 * Verifies the signature of a token and returns its payload.
 *
 * @param checkType gets `typ` in lower case without the optional `application/`
 *   (https://www.rfc-editor.org/rfc/rfc7515#section-4.1.9). It throws for a wrong type before the key is
 *   looked up, so that a refused token causes no request
 * @throws AccessError; its subclass names the defect
 */
export async function verifyJws(
  token: string,
  { keySource }: Pick<ResolvedOptions, 'keySource'>,
  checkType: (typ: unknown) => void,
): Promise<Uint8Array> {
  if (!token) throw new TokenMissingError()
  if (token.length > MAX_LENGTH)
    throw new TokenMalformedError(`it has ${token.length} characters; at most ${MAX_LENGTH} are allowed`)
  if (/[^\w.-]/.test(token)) throw new TokenMalformedError('it has characters outside base64url')
  const keyFor = (header: CompactJWSHeaderParameters) => {
    const name = parseKeyName(header)
    const { typ } = header
    checkType(typeof typ === 'string' ? typ.toLowerCase().replace(/^application\//, '') : typ)
    return 'static' in keySource ? findKey(keySource.static, name) : keySource.remote.find(name)
  }
  const { payload } = await compactVerify(token, keyFor).catch(error => {
    if (error instanceof AccessError) throw error
    if (error instanceof errors.JWSSignatureVerificationFailed) throw new InvalidSignatureError(error)
    // An error that is no `JOSEError` says nothing about the token, so it must not become a 401.
    throw error instanceof errors.JOSEError ? new TokenMalformedError(error.message, error) : error
  })
  return payload
}
