import { OAuthError } from './error.ts'

/**
 * Parameters of one request. `values` has the parameters that are well-formed, not empty and sent once. Only
 * `resource` may be sent several times. An empty parameter counts as omitted
 * (https://www.rfc-editor.org/rfc/rfc6749#section-3.1). `irregular` has the names of all other parameters,
 * including the empty parameters. A name that cannot be decoded is listed as ''. The parser does not refuse
 * an irregular parameter, because the authorization endpoint validates the redirect URI before it reports a
 * repeated parameter.
 */
export type ParameterMap = {
  readonly values: ReadonlyMap<string, string>
  readonly irregular: ReadonlyMap<string, 'empty' | 'repeated' | 'malformed'>
}

/**
 * Maximum number of parameters. The limit keeps the work small that a stranger can cause. Standard requests
 * have far fewer parameters.
 */
const maxParameters = 100

/** Decodes application/x-www-form-urlencoded. Returns undefined for a broken escape or invalid UTF-8. */
export const decodeForm = (text: string): string | undefined => {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text
  if (!spaced.includes('%')) return spaced
  try {
    return decodeURIComponent(spaced)
  } catch {
    return undefined
  }
}

/**
 * True when a parameter may have this value. PostgreSQL cannot store NUL. Only `state` may contain NUL,
 * because the client must get `state` back unchanged.
 */
const isStorable = (name: string, value: string) => name === 'state' || !value.includes('\0')

/**
 * Parses query strings and form bodies (raw, without `?`) as one request. A name that is in several of these
 * sources counts as repeated, except `resource`. A raw U+FFFD is refused, because decoders put it in place of
 * invalid UTF-8. A client can send this character percent-encoded.
 *
 * @throws OAuthError `invalid_request` for more than 100 parameters or invalid Unicode
 */
export const parseParameters = (...sources: readonly string[]): ParameterMap => {
  const values = new Map<string, string>()
  const irregular = new Map<string, 'empty' | 'repeated' | 'malformed'>()
  let count = 0
  for (const source of sources) {
    if (!source.isWellFormed() || source.includes('\ufffd')) throw new OAuthError('invalid_request')
    for (let start = 0, end = 0; start < source.length; start = end + 1) {
      if (++count > maxParameters) throw new OAuthError('invalid_request', 'There are too many parameters.')
      end = source.indexOf('&', start)
      if (end === -1) end = source.length
      if (end === start) continue
      const piece = source.slice(start, end)
      const equals = piece.indexOf('=')
      const name = decodeForm(equals === -1 ? piece : piece.slice(0, equals))
      const value = equals === -1 ? '' : decodeForm(piece.slice(equals + 1))
      if (name === undefined) irregular.set('', 'malformed')
      else if (name === 'resource' && value && isStorable(name, value) && !irregular.has(name))
        // Only `resource` may be repeated (RFC 8707 section 2). Spaces separate the values, because URIs
        // contain no spaces.
        values.set(name, values.has(name) ? `${values.get(name)} ${value}` : value)
      else if (values.delete(name) || irregular.has(name)) irregular.set(name, 'repeated')
      else if (value === undefined || !isStorable(name, value)) irregular.set(name, 'malformed')
      else if (value === '') irregular.set(name, 'empty')
      else values.set(name, value)
    }
  }
  return { values, irregular }
}

const refuseIrregular = (irregularity: string | undefined, name: string) => {
  if (irregularity === 'repeated') throw new OAuthError('invalid_request', `${name} is sent twice.`)
  if (irregularity === 'malformed') throw new OAuthError('invalid_request', `${name} is malformed.`)
}

/**
 * Checks that no parameter is repeated or malformed.
 *
 * @throws OAuthError `invalid_request`
 */
export const checkRegular = ({ irregular }: ParameterMap): void => {
  for (const irregularity of irregular.values()) refuseIrregular(irregularity, 'A parameter')
}

/**
 * Parses a form in which no parameter may be repeated or malformed, such as the form of the token endpoint.
 *
 * @throws OAuthError `invalid_request`
 */
export const parseForm = (body: string): ReadonlyMap<string, string> => {
  const parameters = parseParameters(body)
  checkRegular(parameters)
  return parameters.values
}

/** Returns the error for a parameter whose value is not allowed. */
export const invalidParameter = (name: string): OAuthError =>
  new OAuthError('invalid_request', `The parameter ${name} is invalid.`)

/**
 * Returns the value of a required parameter.
 *
 * @throws OAuthError `invalid_request` with the parameter's name
 */
export const requireParameter = (values: ReadonlyMap<string, string>, name: string): string => {
  const value = values.get(name)
  if (value === undefined) throw new OAuthError('invalid_request', `The parameter ${name} is missing.`)
  return value
}

/**
 * Returns the value of a required parameter. Refuses this parameter when it is irregular. Irregular other
 * parameters are not refused.
 *
 * @throws OAuthError `invalid_request`
 */
export const requireRegular = ({ values, irregular }: ParameterMap, name: string): string => {
  refuseIrregular(irregular.get(name), `The parameter ${name}`)
  return requireParameter(values, name)
}
