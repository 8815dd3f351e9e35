import { hostActor } from '#src/audit/record.ts'
import type { Core } from '#src/context.ts'
import { serverActor as by } from '#src/directory/access.ts'
import { apiAnswer } from '#src/directory/apis/schema.ts'
import { createApi, deleteApi, updateApi } from '#src/directory/apis/service.ts'
import { type Api, findApiById, readApi } from '#src/directory/apis/store.ts'
import { type CreateClient, clientAnswer, type UpdateClient } from '#src/directory/clients/schema.ts'
import { createClient, deleteClient, replaceSecret, updateClient } from '#src/directory/clients/service.ts'
import { type Client, readClient } from '#src/directory/clients/store.ts'
import { groupAnswer } from '#src/directory/groups/schema.ts'
import { createGroup, deleteGroup, updateGroup } from '#src/directory/groups/service.ts'
import { findGroup, type GroupWithRoles } from '#src/directory/groups/store.ts'
import type {
  CreateIdentityProvider,
  UpdateIdentityProvider,
} from '#src/directory/identity-providers/schema.ts'
import { providerAnswer } from '#src/directory/identity-providers/schema.ts'
import { openSecret } from '#src/directory/identity-providers/secret.ts'
import { createProvider, deleteProvider, updateProvider } from '#src/directory/identity-providers/service.ts'
import { readProvider, withRoles } from '#src/directory/identity-providers/store.ts'
import type { ProviderWithRoles } from '#src/directory/identity-providers/types.ts'
import { inviteUser } from '#src/directory/invitations/service.ts'
import { organizationAnswer } from '#src/directory/organizations/schema.ts'
import {
  createOrganization,
  deleteOrganization,
  updateOrganization,
} from '#src/directory/organizations/service.ts'
import {
  type Organization,
  readOrganization,
  readOrganizationBySlug,
} from '#src/directory/organizations/store.ts'
import { roleAnswer } from '#src/directory/roles/schema.ts'
import { createRole, deleteRole, updateRole } from '#src/directory/roles/service.ts'
import { findRole, type Role } from '#src/directory/roles/store.ts'
import { setPicture } from '#src/directory/users/picture.ts'
import { userAnswer } from '#src/directory/users/schema.ts'
import { createUser, deleteUser, updateUser } from '#src/directory/users/service.ts'
import { findUser, roleNames, setLastLogin, type UserRow } from '#src/directory/users/store.ts'
import { invalid } from '#src/lib/app-error.ts'
import { DAY, SECOND } from '#src/lib/duration.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import { hashSecret, type SecretHash } from '#src/lib/secrets.ts'
import type { Queries } from '#src/storage/store.ts'
import { webhookAnswer } from '#src/webhooks/schema.ts'
import { createWebhook, deleteWebhook, rotateWebhookSecret, updateWebhook } from '#src/webhooks/service.ts'
import { openWebhookSecret, secretOfText, secretText } from '#src/webhooks/signature.ts'
import { findWebhook, findWebhookNamed, type Webhook } from '#src/webhooks/store.ts'
import { setMembers } from './members.ts'
import type { SeedOf, SeedSection } from './schema.ts'
import { findGroupNamed, findRoleNamed, findUserNamed, membersOf } from './store.ts'
import type { SeedRun } from './transaction.ts'

type Fields = Record<string, unknown>

/** Finds, creates, changes and removes entries of one section, through the services of the admin API. */
export interface SeedKind<S extends SeedSection, Row> {
  /**
   * Finds the stored object of an entry. An entry with an id is found by the id, so that a changed name
   * updates the object. An entry without an id is found by its name.
   */
  find(q: Queries, value: SeedOf<S>, organization_id: OrganizationId): Promise<Row | undefined>
  /** Returns the fields that are compared before and after an update. */
  show(work: SeedRun, row: Row): Promise<Fields> | Fields
  create(work: SeedRun, value: SeedOf<S>, organization_id: OrganizationId): Promise<unknown>
  /** @param given the fields that the file names */
  update(work: SeedRun, row: Row, given: Fields, value: SeedOf<S>): Promise<unknown>
  remove(context: Core, row: Row): Promise<void>
}

const required = (field: string, message: string): never => {
  throw invalid({ field, code: 'required', message })
}

const organizations: SeedKind<'organizations', Organization> = {
  find: (tx, { id, slug }) => (id ? readOrganization(tx, id) : readOrganizationBySlug(tx, slug)),
  show: (_, row) => organizationAnswer(row),
  create: ({ context }, { id, name, ...value }) =>
    createOrganization(context, { ...value, name: name ?? value.slug, ...(id && { id }) }, by),
  update: ({ context }, row, given) => updateOrganization(context, row.id, given, by),
  remove: (context, { id }) => deleteOrganization(context, id, by),
}

const roles: SeedKind<'roles', Role> = {
  find: (tx, { id, name }, organization_id) =>
    id ? findRole(tx, id) : findRoleNamed(tx, organization_id, name),
  show: (_, row) => ({ ...roleAnswer(row), user_count: 0 }),
  create: ({ context }, { id, organization: _, ...value }, organization_id) =>
    createRole(context, { ...value, organization_id, ...(id && { id }) }, by),
  update: ({ context }, row, given) => updateRole(context, row.id, given, by),
  remove: (context, { id }) => deleteRole(context, id, by),
}

const users: SeedKind<'users', UserRow> = {
  find: (tx, { id, username }, organization_id) =>
    id ? findUser(tx, undefined, id) : findUserNamed(tx, organization_id, username),
  show: async ({ tx }, row) => ({
    ...userAnswer({ ...row, roles: await roleNames(tx, row.id) }),
    picture: row.picture,
  }),
  create: ({ context, hashOf }, value, organization_id) => {
    const { id, organization: _, password: __, password_hash: ___, picture, invite, ...user } = value
    const created = { ...user, organization_id, password_hash: hashOf(value), ...(id && { id }) }
    return createUser(context, created, hostActor, async (tx, row) => {
      // On the server that the hash comes from, a person may have entered another person's address. A login
      // is recorded, so that the address alone does not link an account at a provider.
      if (value.password_hash && !row.email_verified) await setLastLogin(tx, row.id, context.clock.now())
      if (picture) await setPicture(context, row.id, picture, hostActor)
      if (invite) await inviteUser(context, tx, row, invite, by)
    })
  },
  // An existing user keeps the password. A file that is applied again must not replace a password that the
  // user has changed.
  update: async ({ context }, row, given, { picture }) => {
    const { password: _, password_hash: __, password_temporary: ___, ...rest } = given
    const { invite: ____, picture: _____, ...change } = rest
    await updateUser(context, row.id, change, hostActor)
    if (picture !== undefined) await setPicture(context, row.id, picture ?? undefined, hostActor)
  },
  remove: (context, { id }) => deleteUser(context, id, hostActor),
}

const groups: SeedKind<'groups', GroupWithRoles> = {
  find: (tx, { id, name }, organization_id) =>
    id ? findGroup(tx, id) : findGroupNamed(tx, organization_id, name),
  show: async ({ tx }, row) => ({
    ...groupAnswer(row),
    member_count: 0,
    members: (await membersOf(tx, row.id)).map(({ username }) => username),
  }),
  create: async (work, value, organization_id) => {
    const { id, organization: _, members: __, ...group } = value
    const created = await createGroup(work.context, { ...group, organization_id, ...(id && { id }) }, by)
    await setMembers(work, created, value)
  },
  update: async (work, row, { members, ...given }, value) => {
    await updateGroup(work.context, row.id, given, by)
    if (members) await setMembers(work, row, value)
  },
  remove: (context, { id }) => deleteGroup(context, id, by),
}

const secretHashOf = ({ client_secret, client_secret_hash }: SeedOf<'clients'>): SecretHash | undefined =>
  client_secret ? hashSecret(client_secret) : client_secret_hash

const clients: SeedKind<'clients', Client> = {
  find: (tx, { client_id }) => readClient(tx, client_id),
  show: (_, row) => ({ ...clientAnswer(row), client_secret: row.secret_hash }),
  create: ({ context }, value, organization_id) => {
    const { organization: _, client_secret: __, client_secret_hash: ___, ...client } = value
    const secret_hash = secretHashOf(value)
    if (value.type === 'confidential' && !secret_hash)
      required('client_secret', 'A new confidential client needs client_secret or client_secret_hash.')
    const created = { ...client, name: client.name ?? value.client_id, organization_id }
    return createClient(context, { ...(created as CreateClient), ...(secret_hash && { secret_hash }) }, by)
  },
  update: async ({ context }, row, given, value) => {
    const { client_secret: _, client_secret_hash: __, ...change } = given
    await updateClient(context, row.client_id, change as UpdateClient, by)
    const hash = secretHashOf(value)
    if (hash && hash !== row.secret_hash) await replaceSecret(context, row.client_id, hash, by)
  },
  remove: (context, { client_id }) => deleteClient(context, client_id, by),
}

const apis: SeedKind<'apis', Api> = {
  find: (tx, { id, identifier }) => (id ? findApiById(tx, id) : readApi(tx, identifier)),
  show: (_, row) => ({ ...apiAnswer(row) }),
  create: async ({ context }, value, organization_id) => {
    const { organization: _, id, ...api } = value
    await createApi(context, { ...api, organization_id, ...(id && { id }) }, by)
  },
  update: ({ context }, row, given) => updateApi(context, row.id, given, by),
  remove: (context, { id }) => deleteApi(context, id, by),
}

const identity_providers: SeedKind<'identity_providers', ProviderWithRoles> = {
  find: async (tx, { id, alias }) => {
    const row = await readProvider(tx, id ?? alias)
    return row && (await withRoles(tx, [row]))[0]
  },
  show: ({ context }, row) => ({
    ...providerAnswer(row, context.clock.now()),
    client_secret: openSecret(context, row),
  }),
  create: ({ context }, value, organization_id) => {
    const { organization: _, id, ...provider } = value
    if (value.type === 'oauth2' && !value.client_secret)
      required(
        'client_secret',
        'A new OAuth 2.0 provider needs client_secret, the secret of this server at the provider.',
      )
    const secret = value.type === 'saml' ? {} : { client_secret: value.client_secret ?? '' }
    const created = { ...provider, ...secret, organization_id } as CreateIdentityProvider
    return createProvider(context, { ...created, ...(id && { id }) }, by)
  },
  update: ({ context }, row, given) => updateProvider(context, row.id, given as UpdateIdentityProvider, by),
  remove: (context, { id }) => deleteProvider(context, id, by),
}

const secretOfSeed = ({ signature, secret }: SeedOf<'webhooks'>): Buffer | undefined =>
  secret === undefined ? undefined : secretOfText(signature, secret)

const webhooks: SeedKind<'webhooks', Webhook> = {
  find: (tx, { id, name }, organization_id) =>
    id ? findWebhook(tx, id) : findWebhookNamed(tx, organization_id, name),
  show: ({ context }, row) => ({
    ...webhookAnswer(context, row),
    secret: secretText(row.signature, openWebhookSecret(context, row)),
  }),
  create: async ({ context }, value, organization_id) => {
    const { organization: _, id, secret: __, ...hook } = value
    const secret = secretOfSeed(value)
    await createWebhook(
      context,
      { ...hook, organization_id, ...(id && { id }), ...(secret && { secret }) },
      by,
    )
  },
  update: async ({ context }, row, { secret: _, ...given }, value) => {
    await updateWebhook(context, row.id, given, by)
    const secret = secretOfSeed(value)
    // After a change of the secret, events are signed with both secrets for a day. The receiver thus has time
    // to change its secret.
    if (secret && !secret.equals(openWebhookSecret(context, row)))
      await rotateWebhookSecret(context, row.id, { overlap: DAY / SECOND, secret }, by)
  },
  remove: (context, { id }) => deleteWebhook(context, id, by),
}

const seedKinds = {
  organizations,
  roles,
  users,
  groups,
  clients,
  apis,
  identity_providers,
  webhooks,
}

/**
 * Returns the functions of a section. Their rows have the type `object`, because only these functions read
 * them.
 */
export const seedKindOf = <S extends SeedSection>(section: S) =>
  seedKinds[section] as unknown as SeedKind<S, object>
