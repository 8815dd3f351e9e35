import { AppError } from './app-error.ts'
import { openWith, sealWith } from './master-key.ts'

/** Where a page ended: the values of the sort columns of its last row. */
export type Keyset = (string | number | null)[]

/** Bytes to whose multiple a keyset is filled up: the length of a cursor does not tell how large a number is. */
const BLOCK = 64

const refused = (cause?: unknown): AppError =>
  new AppError(
    'invalid_request',
    'The cursor does not belong to this query. Start again without it, with the same filters and order on each page.',
    { cause },
  )

/**
 * An opaque cursor, base64url: the keyset under AES-256-GCM, bound to the query that it belongs to. Sort columns count all
 * rows of the instance, which a tenant is not told.
 */
export const sealCursor = (key: Buffer, keyset: Keyset, binding: string): string => {
  const plain = Buffer.from(JSON.stringify(keyset))
  const filled = Buffer.alloc(Math.ceil(plain.length / BLOCK) * BLOCK, ' ')
  plain.copy(filled)
  return sealWith(key, filled, binding).toString('base64url')
}

/** The keyset of a cursor that this server made for the same query; 400 `invalid_request` for any other. */
export const openCursor = (key: Buffer, cursor: string, binding: string): Keyset => {
  const sealed = Buffer.from(cursor, 'base64url')
  // Another spelling of the same bytes is another cursor.
  if (sealed.toString('base64url') !== cursor) throw refused()
  let plain: string
  try {
    plain = openWith(key, sealed, binding).toString()
  } catch (cause) {
    throw refused(cause)
  }
  return JSON.parse(plain) as Keyset
}
