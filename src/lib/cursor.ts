import { AppError } from './app-error.ts'
import { openWith, sealWith } from './master-key.ts'

/** Position at which a page ended: the values of the sort columns in its last row. */
export type Keyset = (string | number | null)[]

/**
 * Bytes of a block. Keysets are padded to whole blocks, so the length of a cursor reveals only the number of
 * blocks of its keyset.
 */
const BLOCK = 64

const refused = (cause?: unknown): AppError =>
  new AppError(
    'invalid_request',
    'The cursor does not belong to this query. Start again without a cursor and keep the filters and the order on each page.',
    { cause },
  )

/**
 * Returns an opaque cursor in base64url: the keyset, encrypted with AES-256-GCM and bound to its query.
 * Keysets contain sequence numbers of the whole instance, which tenants must not see.
 */
export const sealCursor = (key: Buffer, keyset: Keyset, binding: string): string => {
  const plain = Buffer.from(JSON.stringify(keyset))
  const filled = Buffer.alloc(Math.ceil(plain.length / BLOCK) * BLOCK, ' ')
  plain.copy(filled)
  return sealWith(key, filled, binding).toString('base64url')
}

/**
 * Returns the keyset of a cursor.
 *
 * @throws AppError 400 `invalid_request` for a cursor that was not sealed with this key for the same query
 */
export const openCursor = (key: Buffer, cursor: string, binding: string): Keyset => {
  const sealed = Buffer.from(cursor, 'base64url')
  // base64url has several spellings of the same bytes. Only the canonical spelling is accepted.
  if (sealed.toString('base64url') !== cursor) throw refused()
  let plain: string
  try {
    plain = openWith(key, sealed, binding).toString()
  } catch (cause) {
    throw refused(cause)
  }
  return JSON.parse(plain) as Keyset
}
