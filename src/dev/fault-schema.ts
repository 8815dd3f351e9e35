import { z } from 'zod'
import { integer, line } from '#src/directory/fields.ts'
import { endpoints, isEndpoint } from './endpoints.ts'

const always = z.literal(true, 'true, or left out.').optional()

/**
 * Paths that cannot have a fault: the guide, and the controls and pages of development mode. The paths of the
 * fake providers can have one.
 */
const FAULTLESS = /^\/(?:guide\b|dev(?:\/(?!openid|saml)|$))/

export const Fault = z
  .strictObject({
    endpoint: z
      .string('An endpoint.')
      .refine(
        name => isEndpoint(name) || name.startsWith('/'),
        `A path such as /oauth/token or /api/*, or one of: ${Object.keys(endpoints).join(', ')}.`,
      )
      .refine(
        name => !FAULTLESS.test(name),
        'The guide, and the controls and pages below /dev/, get no faults.',
      ),
    /** Limits the fault to requests with this client_id. */
    client_id: line(128, 1).optional(),
    /** Number of requests that get the fault. Default: all requests until the faults are cleared. */
    times: integer(1, 1_000_000).optional(),
    /** Milliseconds by which the answer is delayed. */
    delay: integer(0, 600_000).optional(),
    status: integer(400, 599).optional(),
    /** OAuth error code. Without `status` the answer has status 400. */
    error: line(64, 1).optional(),
    error_description: line(256).optional(),
    /** Sends no answer. */
    hang: always,
    /** Closes the connection. */
    reset: always,
    /** Sends incomplete JSON. */
    malformed: always,
  })
  .refine(
    fault => {
      const kinds = [fault.status ?? fault.error, fault.hang, fault.reset, fault.malformed]
      const count = kinds.filter(Boolean).length
      return count === 1 || (count === 0 && fault.delay !== undefined)
    },
    {
      message:
        'Give one of: an error answer (status, error or both), hang, reset, malformed. A delay may be combined with one of these, or given alone.',
    },
  )
export type Fault = z.output<typeof Fault>
