import { z } from 'zod'
import type { CalledFor, Context } from '#src/context.ts'
import { oneOf } from '#src/directory/fields.ts'
import { isLine } from '#src/lib/text.ts'

const names = [
  ...['metadata', 'issuer', 'endpoints', 'code_flow', 'keys', 'credentials', 'userinfo', 'redirect_uri'],
  ...['entity_id', 'sign_on', 'certificate', 'own_metadata'],
] as const
const statuses = ['good', 'bad', 'warning', 'unknown', 'info'] as const

/** A check of the connection to an identity provider. */
export const ConnectionCheck = z
  .object({
    name: z.string().describe(`Name of the check: ${names.join(', ')}.`),
    status: oneOf(statuses).describe(
      '`good`: no problem; `warning`: may become a problem; `bad`: a login would fail; `unknown`: only a login can show the result; `info`: a value to enter at the provider.',
    ),
    message: z.string().describe('The finding as a sentence.'),
    value: z.string().optional().describe('The value that was found, or the value to enter at the provider.'),
  })
  .meta({ id: 'ConnectionCheck', description: 'A check of the connection to an identity provider.' })
export type ConnectionCheck = z.output<typeof ConnectionCheck>

/**
 * Returns the result of a check. The `value` may come from another server and may have any type and length.
 * The result contains only a value that `isShown` accepts.
 */
export const finding = (
  name: (typeof names)[number],
  status: ConnectionCheck['status'],
  message: string,
  value?: unknown,
): ConnectionCheck => ({ name, status, message, ...(isShown(value) && { value }) })

/** True for one line of at most 256 characters. */
const isShown = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= 256 && isLine(value)

export const UNREACHABLE =
  'The address is not allowed or gave no complete answer in time. Private addresses need GATEHOUSE_OUTBOUND_ALLOW.'

/** True when the address gives any answer at all. */
const answers = (context: Context, organization: CalledFor, url: string): Promise<boolean> =>
  context.fetch(url, { organization }).then(
    () => true,
    () => false,
  )

/** Checks that the address answers. */
export const checkAddress = async (
  context: Context,
  organization: CalledFor,
  name: 'userinfo' | 'sign_on',
  url: string,
): Promise<ConnectionCheck> =>
  (await answers(context, organization, url))
    ? finding(name, 'good', 'The address answers.', url)
    : finding(name, 'bad', UNREACHABLE, url)
