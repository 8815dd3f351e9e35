import { createHmac, timingSafeEqual } from 'node:crypto'
import { AppError } from './app-error.ts'

/** Where a page ended: the values of the sort columns of its last row. */
export type Keyset = (string | number | null)[]

const mac = (key: Buffer, payload: string, binding: string): Buffer =>
  createHmac('sha256', key).update(payload).update('\0').update(binding).digest().subarray(0, 16)

/** An opaque cursor: the keyset, signed together with the query that it belongs to. */
export const sealCursor = (key: Buffer, keyset: Keyset, binding: string): string => {
  const payload = Buffer.from(JSON.stringify(keyset)).toString('base64url')
  return `${payload}.${mac(key, payload, binding).toString('base64url')}`
}

/** The keyset of a cursor that this server made for the same query; 400 `invalid_request` for any other. */
export const openCursor = (key: Buffer, cursor: string, binding: string): Keyset => {
  const dot = cursor.indexOf('.')
  const payload = cursor.slice(0, Math.max(dot, 0))
  const given = Buffer.from(cursor.slice(dot + 1), 'base64url')
  const expected = mac(key, payload, binding)
  if (given.length !== expected.length || !timingSafeEqual(given, expected))
    throw new AppError(
      'invalid_request',
      'The cursor does not belong to this query. Start again without it, with the same filters and order on each page.',
    )
  return JSON.parse(Buffer.from(payload, 'base64url').toString()) as Keyset
}
