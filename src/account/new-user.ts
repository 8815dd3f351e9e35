import type { Context } from '#src/context.ts'
import { CreateUser } from '#src/directory/users/schema.ts'
import { takenName } from '#src/directory/users/store.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import type { NewUserErrors, NewUserFields } from '#src/pages/data.ts'

const fields = ['username', 'email', 'first_name', 'last_name'] as const satisfies (keyof NewUserFields)[]

/** Reads the fields of a new user from a form. An absent field becomes an empty text. */
export const newUserOf = (form: ReadonlyMap<string, string>): NewUserFields => ({
  username: form.get('username') ?? '',
  email: form.get('email') ?? '',
  first_name: form.get('first_name') ?? '',
  last_name: form.get('last_name') ?? '',
})

/** Copies the fields of a new user from an object that has further fields. */
export const valuesOf = ({ username, email, first_name, last_name }: NewUserFields): NewUserFields => ({
  username,
  email,
  first_name,
  last_name,
})

/** Returns the errors of a new user's fields. A name or address that another user has is an error too. */
export const newUserErrors = async (
  { store }: Context,
  organization_id: OrganizationId,
  values: NewUserFields,
): Promise<NewUserErrors> => {
  const refused = CreateUser.safeParse(values).error?.issues.map(({ path }) => path[0]) ?? []
  const errors: NewUserErrors = {}
  const { username, email } = values
  const taken = await store.read(q => takenName(q, { id: 'usr_', organization_id, username, email }))
  if (taken) errors[taken === 'username' ? 'username' : 'email'] = 'taken'
  for (const name of fields)
    if (values[name] === '') errors[name] = 'required'
    else if (refused.includes(name))
      errors[name] = name === 'username' || name === 'email' ? name : 'too_long'
  return errors
}
