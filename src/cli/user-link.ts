import { pino } from 'pino'
import { createSetUpLink, createSignInLink } from '#src/account/links.ts'
import { loadConfig } from '#src/config.ts'
import { findOrganizationBySlug } from '#src/directory/organizations/store.ts'
import { findUser, findUserForLogin } from '#src/directory/users/store.ts'
import { openInstance } from './instance.ts'

/** Being locked out ends here: a single-use link for a user, or for the first admin when no name is given. */
export const userLink = async (
  name: string | undefined,
  options: { config?: string; organization: string },
): Promise<void> => {
  const { config } = loadConfig(process.env, options.config)
  const instance = await openInstance(config, pino({ level: 'silent' }))
  try {
    console.log(
      name === undefined
        ? await createSetUpLink(instance)
        : await linkFor(instance, name, options.organization),
    )
  } finally {
    await instance.store.close()
  }
}

const linkFor = async (
  instance: Awaited<ReturnType<typeof openInstance>>,
  name: string,
  slug: string,
): Promise<string> => {
  const { store } = instance
  const organization = await findOrganizationBySlug(store, slug)
  if (!organization) throw new Error(`no organization has the slug "${slug}"`)
  const user = await store.read(q =>
    name.startsWith('usr_') ? findUser(q, undefined, name) : findUserForLogin(q, organization.id, name),
  )
  if (!user)
    throw new Error(`no such user in the organization "${slug}" (name one of another with --organization)`)
  return createSignInLink(instance, user)
}
