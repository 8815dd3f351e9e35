import { z } from 'zod'
import { stored } from '#src/directory/fields.ts'
import { writable as user } from '#src/directory/users/schema.ts'
import { example } from '#src/http/example.ts'
import { listOf, listQuery, ofOrganization } from '#src/http/list.ts'
import { iso } from '#src/lib/text.ts'
import type { WaitingUser } from './store.ts'

const RegistrationAnswer = z
  .object({
    id: z.string().describe('Id of the user.'),
    organization_id: stored.organization_id,
    username: user.username,
    email: user.email,
    email_verified: z
      .boolean()
      .describe('False if the user signed up through a provider that has not verified the address.'),
    first_name: user.first_name,
    last_name: user.last_name,
    created_at: stored.created_at,
  })
  .meta({
    id: 'Registration',
    description: 'A disabled user who has registered and waits for approval.',
    example: {
      id: example.user_id,
      organization_id: example.organization_id,
      username: 'alice',
      email: 'alice@example.com',
      email_verified: true,
      first_name: 'Alice',
      last_name: 'Doe',
      created_at: example.time,
    },
  })

/** Returns a waiting registration in the form of the admin API's answer. */
export const registrationAnswer = ({
  user_id,
  created_at,
  ...person
}: WaitingUser): z.output<typeof RegistrationAnswer> => ({
  id: user_id,
  ...person,
  created_at: iso(created_at),
})

export const ListRegistrations = listQuery({ organization_id: ofOrganization })
export type ListRegistrations = z.output<typeof ListRegistrations>

export const RegistrationList = listOf('RegistrationList', RegistrationAnswer)
