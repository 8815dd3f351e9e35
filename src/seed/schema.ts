import { z } from 'zod'
import { CreateApi } from '#src/directory/apis/schema.ts'
import { CreateClient, clientTypes } from '#src/directory/clients/schema.ts'
import { flag, line, lines, set } from '#src/directory/fields.ts'
import { CreateGroup } from '#src/directory/groups/schema.ts'
import { CreateIdentityProvider } from '#src/directory/identity-providers/schema.ts'
import { CreateOrganization } from '#src/directory/organizations/schema.ts'
import { CreateRole } from '#src/directory/roles/schema.ts'
import { isKnownHash } from '#src/directory/users/password.ts'
import { CreateUser } from '#src/directory/users/schema.ts'
import type {
  ApiId,
  GroupId,
  IdentityProviderId,
  IdPrefix,
  OrganizationId,
  RoleId,
  UserId,
  WebhookId,
} from '#src/lib/ids.ts'
import { isUuid } from '#src/lib/ids.ts'
import type { SecretHash } from '#src/lib/secrets.ts'
import { VERSION } from '#src/lib/version.ts'
import { PHOTO_LIMIT, PHOTO_PIXELS, readPhoto } from '#src/pages/photo.ts'
import type { PictureFault } from '#src/pages/picture.ts'
import { CreateWebhook } from '#src/webhooks/schema.ts'
import { secretOfText } from '#src/webhooks/signature.ts'

const chosenId = <T extends string>(prefix: IdPrefix) =>
  z
    .custom<T>(
      text =>
        typeof text === 'string' && text.startsWith(`${prefix}_`) && isUuid(text.slice(prefix.length + 1)),
      `${prefix}_ and a UUID, such as ${prefix}_0192d3a4-5b6c-7d8e-9f00-112233445566.`,
    )
    .meta({ type: 'string', description: 'Id of the entry. Default: a new id.' })
    .optional()

const organization = z
  .string('The slug of an organization.')
  .default('default')
  .meta({ description: 'Slug of an organization in this file or on the server.' })

const EMPTY = 'Leave it out, or give a text of 1 to 8192 characters.'
/**
 * A secret, or the name of an environment variable that contains the secret. With a variable the file
 * contains no secret.
 */
const secret = (about: string) =>
  z
    .union([lines(8192).min(1, EMPTY), z.strictObject({ env: z.string() })], 'A text, or { env: NAME }.')
    .transform((value, issues) => {
      if (typeof value === 'string') return value
      issues.addIssue({
        code: 'custom',
        message: `The environment variable ${value.env} is not set, or is empty.`,
      })
      return z.NEVER
    })
    .meta({ description: about })

const Organization = z.strictObject({
  id: z
    .union(
      [z.literal('org_default'), chosenId<OrganizationId>('org').unwrap()],
      'org_ and a UUID, or org_default.',
    )
    .transform(id => id as OrganizationId)
    .meta({ type: 'string' })
    .optional(),
  ...CreateOrganization.shape,
  name: CreateOrganization.shape.name.optional(),
})

const Role = z.strictObject({
  id: chosenId<RoleId>('role'),
  organization,
  name: CreateRole.shape.name,
  description: CreateRole.shape.description,
  permissions: CreateRole.shape.permissions,
})

const Group = z.strictObject({
  id: chosenId<GroupId>('grp'),
  organization,
  name: CreateGroup.shape.name,
  description: CreateGroup.shape.description,
  roles: CreateGroup.shape.roles,
  members: set(line(128), 100_000)
    .default([])
    .meta({ description: 'Names of users in this file or on the server.' }),
})

const PHOTO = `A PNG, JPEG or WebP picture of at most ${PHOTO_LIMIT / 1024} KiB, ${PHOTO_PIXELS} pixels wide and high, as a data URI, such as data:image/png;base64,iVBOR….`
const photoFaults: Record<PictureFault, string> = {
  form: PHOTO,
  bytes: `The picture is larger than ${PHOTO_LIMIT / 1024} KiB.`,
  content: 'The bytes are not a still PNG, JPEG or WebP picture.',
  pixels: `The picture exceeds ${PHOTO_PIXELS} pixels in width or height.`,
}
/** A picture of a person, without metadata. */
const photo = z.string(PHOTO).transform((uri, issues) => {
  const read = readPhoto(uri)
  if (typeof read !== 'string') return read
  issues.addIssue({ code: 'custom', message: photoFaults[read] })
  return z.NEVER
})

const { organization_id: _, password: __, first_name, last_name, ...user } = CreateUser.shape
const User = z
  .strictObject({
    id: chosenId<UserId>('usr'),
    organization,
    ...user,
    first_name: first_name.default(''),
    last_name: last_name.default(''),
    password: secret('For new users only: it never replaces the password of an existing user.').optional(),
    password_hash: z
      .string()
      .refine(isKnownHash, 'A PHC string of argon2, or a bcrypt hash.')
      .optional()
      .meta({ description: 'Takes the place of password. For new users only.' }),
    password_temporary: flag
      .default(false)
      .describe('Whether a new user must replace the password at the next login. For new users only.'),
    picture: photo
      .nullable()
      .optional()
      .describe(`${PHOTO} Null removes the picture. An export has the picture with \`--pictures\`.`),
    invite: z.literal('mail', 'The only value is mail.').optional().meta({
      description:
        'The user gets a mail with a link for choosing a password. For new users only. Takes the place of password.',
    }),
  })
  .refine(({ password, password_hash }) => !password || !password_hash, {
    path: ['password_hash'],
    message: 'Give password or password_hash, not both.',
  })
  .refine(({ password, password_hash, invite }) => !invite || !(password || password_hash), {
    path: ['invite'],
    message: 'Give invite or a password, not both.',
  })
  .refine(
    ({ password, password_hash, password_temporary }) => !password_temporary || password || password_hash,
    {
      path: ['password_temporary'],
      message: 'Give password or password_hash, too.',
    },
  )

const { organization_id: ___, ...client } = CreateClient.shape
const Client = z
  .strictObject({
    organization,
    ...client,
    name: client.name.optional(),
    type: z.enum(clientTypes, 'One of: confidential, public.'),
    client_secret: secret(
      'For a confidential client. A different secret replaces the stored one.',
    ).optional(),
    client_secret_hash: z
      .custom<SecretHash>(
        text => typeof text === 'string' && /^[\w-]{43}$/.test(text),
        'The SHA-256 of the secret in base64url (43 characters).',
      )
      .meta({ type: 'string', description: 'Takes the place of client_secret.' })
      .optional(),
  })
  .superRefine(({ type, client_secret, client_secret_hash: hash }, issues) => {
    const path = [client_secret ? 'client_secret' : 'client_secret_hash']
    const given = Number(Boolean(client_secret)) + Number(Boolean(hash))
    const message =
      given > 1 ? 'Give client_secret or client_secret_hash, not both.' : 'A public client has no secret.'
    if (given > 1 || (given > 0 && type === 'public')) issues.addIssue({ code: 'custom', path, message })
  })

const { organization_id: ____, ...api } = CreateApi.shape
const Api = z.strictObject({ id: chosenId<ApiId>('api'), organization, ...api })

const { organization_id: _____, ...webhook } = CreateWebhook.shape
const Webhook = z
  .strictObject({
    id: chosenId<WebhookId>('hook'),
    organization,
    ...webhook,
    secret: secret(
      'Begins with `whsec_`. For the signature `v1a` it begins with `whsk_`. Default: a new secret.',
    ).optional(),
  })
  .refine(({ signature, secret }) => secret === undefined || secretOfText(signature, secret) !== undefined, {
    path: ['secret'],
    message: 'A secret is whsec_ and 24 to 64 bytes in base64. For v1a it is whsk_ and 32 bytes in base64.',
  })

const provider = { id: chosenId<IdentityProviderId>('idp'), organization }
const withSecret = {
  ...provider,
  client_secret: secret('Secret of the client registered at the provider.').optional(),
}
const [Oidc, OAuth2, Saml] = CreateIdentityProvider.options
const IdentityProvider = z.discriminatedUnion(
  'type',
  [
    Oidc.omit({ organization_id: true }).extend(withSecret),
    OAuth2.omit({ organization_id: true }).extend(withSecret),
    Saml.omit({ organization_id: true }).extend(provider),
  ],
  'One of: oidc, oauth2, saml.',
)

const listOf = <T extends z.ZodType>(entry: T) => z.array(entry, 'A list.').optional()

/**
 * The entries that an instance should have. In a new entry, omitted fields get the defaults of the admin API.
 * In an existing entry, omitted fields keep their values.
 */
export const Seed = z.strictObject(
  {
    $schema: z.string().optional(),
    organizations: listOf(Organization),
    roles: listOf(Role),
    users: listOf(User),
    groups: listOf(Group),
    clients: listOf(Client),
    apis: listOf(Api),
    identity_providers: listOf(IdentityProvider),
    webhooks: listOf(Webhook),
  },
  'An object with any of: organizations, roles, users, groups, clients, apis, identity_providers, webhooks.',
)
export type SeedInput = z.input<typeof Seed>
export type Seed = z.output<typeof Seed>

export const seedSections = [
  'organizations',
  'roles',
  'users',
  'groups',
  'clients',
  'apis',
  'identity_providers',
  'webhooks',
] as const
export type SeedSection = (typeof seedSections)[number]
/**
 * The field of a section that contains a secret. `{ env: NAME }` is allowed in these fields only, so that a
 * reviewer can read the values of all other fields in the file.
 */
export const secretFields = {
  users: 'password',
  clients: 'client_secret',
  identity_providers: 'client_secret',
  webhooks: 'secret',
} as const satisfies Partial<Record<SeedSection, string>>
export type SeedOf<S extends SeedSection> = NonNullable<Seed[S]>[number]

type PartsOf<S extends SeedSection> = S extends 'organizations' ? SeedOf<S>['settings'] : SeedOf<S>
/**
 * Fields that give rights to people, applications or providers. For organizations, settings that admit
 * someone or make a login weaker. Fields that users change themselves, such as `email_verified`, are not in
 * the list.
 */
export const rightsFields = {
  organizations: [
    'session_ttl',
    'email_code',
    'remember_browser_days',
    'self_deletion',
    'registration',
    'password_policy',
    'client_registration',
    'client_metadata_documents',
    'allowed_metadata_documents',
    'login_domains',
  ],
  roles: ['permissions'],
  users: ['roles'],
  groups: ['roles', 'members'],
  clients: [
    'redirect_uris',
    'web_origins',
    'grant_types',
    'scopes',
    'capabilities',
    'consent_required',
    'access_token_typ',
    'claims',
    'allowed_roles',
    'allowed_groups',
  ],
  apis: ['scopes', 'clients', 'served_by', 'open_to_dynamic_clients'],
  identity_providers: ['allow_registration', 'trust_email', 'default_roles', 'attribute_mapping'],
  webhooks: ['events', 'all_organizations'],
} as const satisfies { [S in SeedSection]: readonly (keyof PartsOf<S>)[] }

/** Returns the JSON Schema for editors, which `gatehouse openapi --seed-schema` prints. */
export const seedJsonSchema = () => ({
  title: `Gatehouse ${VERSION}: desired state of an instance`,
  ...z.toJSONSchema(Seed, { io: 'input', unrepresentable: 'any' }),
})
