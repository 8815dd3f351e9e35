import { useEffect, useState } from 'preact/hooks'
import { asProblem, read } from './api.ts'
import { may, mayListOrganizations } from './me.ts'
import { Value } from './parts.tsx'
import { person } from './session.ts'

interface Names {
  id?: string
  username?: string
  display_name?: string
  name?: string
  email?: string | null
}

/** Returns the name of an object. Returns the e-mail address of an invitation, because it has no name. */
const nameOf = ({ display_name, username, name, email }: Names): string | undefined =>
  display_name ?? username ?? name ?? email ?? undefined

/**
 * Path of the list of objects, by the target type that an audit event names. The path is the same in the
 * admin API and in the console.
 */
const lists: Record<string, string> = {
  user: 'users',
  client: 'clients',
  api: 'apis',
  role: 'roles',
  group: 'groups',
  organization: 'organizations',
  identity_provider: 'identity-providers',
  invitation: 'invitations',
  webhook: 'webhooks',
}

const pathOf = (type: string, id: string): string | undefined =>
  lists[type] && `/${lists[type]}/${encodeURIComponent(id)}`

/**
 * Names of objects by path. Each name is read once, so that a list needs few calls. A name is undefined when
 * the object is deleted or the caller may not see it. After any other failure, the name is read again when it
 * is next shown.
 */
const known = new Map<string, Promise<string | undefined>>()

const readName = (path: string): Promise<string | undefined> => {
  const reading =
    known.get(path) ??
    read<Names>(path).then(nameOf, error => {
      const { status } = asProblem(error)
      if (status !== 403 && status !== 404) known.delete(path)
      return undefined
    })
  known.set(path, reading)
  return reading
}

/** Drops the name of a changed object from memory, so that the name is read again. */
export const forgetName = (path: string): void => {
  known.delete(path)
}

/** Returns the name of an object. Returns undefined until the name is read. */
export const useName = (type: string, id: string): string | undefined => {
  const path = pathOf(type, id)
  const [name, setName] = useState<string>()
  useEffect(() => {
    if (path) void readName(path).then(setName)
  }, [path])
  return name
}

/**
 * Returns the name of an organization. Returns undefined for the caller's own organization, because the
 * console shows only the names of other organizations.
 */
export const foreignOrganization = async (id: string): Promise<string | undefined> =>
  id === person.value?.organization_id ? undefined : readName(`/organizations/${id}`)

/** Shows the name of an object as a link, with its id. */
export const Named = ({ type, id }: { type: string; id: string }) => {
  const name = useName(type, id)
  return (
    <>
      {name && <a href={`/console${pathOf(type, id)}`}>{name}</a>} <Value text={id} />
    </>
  )
}

/**
 * Shows the name of an object as a link. While the name is unknown, it shows the id without a link, because
 * the object may be deleted.
 */
export const NamedLink = ({ type, id }: { type: string; id: string }) => {
  const name = useName(type, id)
  return name ? <a href={`/console${pathOf(type, id)}`}>{name}</a> : <code>{id}</code>
}

/**
 * Reads the names of the organizations to which the objects belong. Returns a function that maps the id of an
 * organization to its name. A name is undefined until it is read. If `withOwn` is false, the name of the
 * caller's own organization is undefined. A caller who may not list organizations gets no names.
 */
export const useOrganizations = (
  objects: readonly { organization_id: string }[],
  withOwn = false,
): ((id: string) => string | undefined) => {
  const [names, setNames] = useState<Record<string, string | undefined>>({})
  const all = mayListOrganizations() ? objects.map(({ organization_id }) => organization_id) : []
  const ids = [...new Set(all)].filter(id => withOwn || id !== person.value?.organization_id)
  useEffect(() => {
    const reading = ids.map(async id => [id, await readName(`/organizations/${id}`)] as const)
    void Promise.all(reading).then(read => setNames(names => ({ ...names, ...Object.fromEntries(read) })))
  }, [ids.join()])
  return id => names[id]
}

/** Shows the user name of a user, as a link if the caller may read users. */
export const UserLink = ({ id, username }: { id: string; username: string }) =>
  may('users:read') ? (
    <a href={`/console/users/${id}`}>
      <strong>{username}</strong>
    </a>
  ) : (
    <strong>{username}</strong>
  )

/**
 * Shows a separator and a link to an organization. Shows nothing for the caller's own organization, and
 * nothing to a caller who may not list the organizations.
 */
export const ForeignOrganization = ({ id }: { id: string }) =>
  mayListOrganizations() && id !== person.value?.organization_id ? (
    <>
      {' · '}
      <NamedLink type="organization" id={id} />
    </>
  ) : null
