import { AppError } from '#src/lib/app-error.ts'
import { SECOND } from '#src/lib/duration.ts'
import { isNestedDeeply } from '#src/lib/json.ts'

/** Maximum bytes of a form. The longest fields are passwords, tokens and scopes of a few KiB. */
const OAUTH_BODY = 64 * 1024
/** Maximum bytes of a posted SAML message. An encrypted response with hundreds of groups fits. */
export const SAML_BODY = 256 * 1024
/** Maximum bytes of a JSON body of the admin API, which may contain pictures and style sheets as strings. */
const ADMIN_BODY = 1024 * 1024

/**
 * Maximum time for a complete body, in ms. The time is limited, because a slow client occupies a connection.
 * A body of 1 MiB needs at least 0.84 Mbit/s.
 */
const BODY_TIMEOUT = 10 * SECOND

const tooLarge = (limit: number): AppError =>
  new AppError('payload_too_large', `The request body is larger than the ${limit / 1024} KiB allowed here.`)

/**
 * Reads the body.
 *
 * @throws AppError 413 as soon as more than `limit` bytes are announced or have arrived
 */
const readBytes = (request: Request, limit: number): Promise<ArrayBuffer | Uint8Array> => {
  const announced = request.headers.get('content-length')
  if (announced === null) return readChunks(request, limit)
  return Number(announced) > limit ? Promise.reject(tooLarge(limit)) : request.arrayBuffer()
}

const readChunks = async (request: Request, limit: number): Promise<Uint8Array> => {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of request.body ?? []) {
    size += chunk.length
    if (size > limit) throw tooLarge(limit)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/**
 * Rejects with 408 when the body is incomplete after `ms`. The answer closes the connection, so the rest of
 * the body is not read. Rejects with 400 when the body ends early.
 */
const withTimeout = <T>(body: Promise<T>, ms: number): Promise<T> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const text = `The request body did not arrive within ${ms / SECOND} seconds.`
      reject(new AppError('request_timeout', text, { headers: { connection: 'close' } }))
    }, ms)
    body.then(
      value => {
        clearTimeout(timer)
        resolve(value)
      },
      error => {
        clearTimeout(timer)
        reject(refusalOf(error))
      },
    )
  })

/**
 * Returns the refusal of a body that cannot be read. An interrupted body counts as an error of the client,
 * because the server did not fail.
 */
const refusalOf = (cause: unknown): AppError =>
  cause instanceof AppError
    ? cause
    : new AppError('invalid_request', 'The request body ended early.', { cause })

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

const mediaType = (request: Request): string =>
  (request.headers.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''

const requireType = (request: Request, type: string): void => {
  if (mediaType(request) !== type)
    throw new AppError('unsupported_media_type', `The content type must be ${type}.`)
  // Other values, such as `utf-8`, are ignored: clients send them by mistake, and the body is unchanged.
  // https://www.rfc-editor.org/rfc/rfc9110#section-15.5.16
  if (/\b(gzip|compress|deflate|br|zstd|dcb|dcz)\b/i.test(request.headers.get('content-encoding') ?? ''))
    throw new AppError('unsupported_media_type', 'The body must not be compressed (Content-Encoding).', {
      headers: { 'accept-encoding': 'identity' },
    })
}

const readText = async (request: Request, limit: number, type: string, within: number): Promise<string> => {
  const bytes = await withTimeout(readBytes(request, limit), within)
  requireType(request, type)
  try {
    return utf8.decode(bytes)
  } catch {
    throw new AppError('invalid_request', 'The request body is not valid UTF-8.')
  }
}

/**
 * Reads a form body as raw text for protocol/oauth/parameters. `within` is in ms.
 *
 * @throws AppError 400 for a body that ends early or is not UTF-8, 408 for a late one, 413 for a large one,
 * 415 for another content type or coding
 */
export const readForm = (request: Request, limit = OAUTH_BODY, within = BODY_TIMEOUT): Promise<string> =>
  readText(request, limit, 'application/x-www-form-urlencoded', within)

/** Maximum bytes of a form with a file. */
const UPLOAD_BODY = 1024 * 1024

/**
 * Reads a form with files (https://www.rfc-editor.org/rfc/rfc7578). A file field in which the user chose no
 * file yields an empty file.
 *
 * @throws AppError 400 for a body that ends early or cannot be parsed, 408 for a late one, 413 for a large
 * one, 415 for another content type or coding
 */
export const readUpload = async (
  request: Request,
): Promise<{ form: Map<string, string>; files: Map<string, Buffer> }> => {
  const bytes = await withTimeout(readBytes(request, UPLOAD_BODY), BODY_TIMEOUT)
  requireType(request, 'multipart/form-data')
  const headers = { 'content-type': request.headers.get('content-type') ?? '' }
  const data = await new Response(new Uint8Array(bytes), { headers }).formData().catch((cause: unknown) => {
    throw new AppError('invalid_request', 'The request body is not a valid form.', { cause })
  })
  const form = new Map<string, string>()
  const files = new Map<string, Buffer>()
  for (const [name, value] of data)
    if (typeof value === 'string') form.set(name, value)
    else files.set(name, Buffer.from(await value.arrayBuffer()))
  return { form, files }
}

/**
 * Reads a JSON body. `limit` is in bytes, and its default is the limit of the admin API. `within` is in ms.
 *
 * @throws AppError 400 `invalid_request` for a body that ends early, is not JSON in UTF-8 or has more than 64
 * levels; 408 for a late body, 413 for a large one, 415 for another content type or coding
 */
export const readJson = async (
  request: Request,
  within = BODY_TIMEOUT,
  limit = ADMIN_BODY,
): Promise<unknown> => {
  const text = await readText(request, limit, 'application/json', within)
  if (isNestedDeeply(text))
    throw new AppError('invalid_request', 'The JSON in the request body is nested deeper than 64 levels.')
  try {
    return JSON.parse(text)
  } catch {
    throw new AppError('invalid_request', 'The request body is not valid JSON.')
  }
}
