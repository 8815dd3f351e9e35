import type { SeedInput } from '#src/seed/schema.ts'

/** Password of alice and admin. It is public, so it exists in development only. */
export const DEV_PASSWORD = 'Gatehouse-dev-1'
/** Secret of `dev-service`. */
export const DEV_SECRET = 'dev-secret'
/** Secret of the admin client in development. It is public. */
export const DEV_ADMIN_SECRET = 'dev-admin-secret'

/** Hash of DEV_PASSWORD. */
export const HASH =
  '$argon2id$v=19$m=64,t=1,p=1$DTrTwdsk4snHo6FofeIeH09vLBBvv8ofgASn4F51+f0$IwM3k5V2Z89NzAJOX2BqYBP1yzw1/fMUaOkNRa8g/V0'

const origins = [
  'http://localhost:3000',
  'http://localhost:4200',
  'http://localhost:5173',
  'http://localhost:8000',
]

const browser = {
  redirect_uris: [
    // A loopback redirect URI without a port matches any port (RFC 8252 section 7.3).
    'http://127.0.0.1/callback',
    'http://127.0.0.1/',
    'http://127.0.0.1/dev/callback',
    ...origins.flatMap(origin => [`${origin}/callback`, `${origin}/`]),
  ],
  post_logout_redirect_uris: ['http://127.0.0.1/', ...origins.map(origin => `${origin}/`)],
  web_origins: origins,
  consent_required: false,
}

/** The confidential client of the default seed, and of each seed without clients. */
export const SERVICE = {
  ...browser,
  organization: 'default',
  client_id: 'dev-service',
  name: 'Service',
  type: 'confidential',
  client_secret: DEV_SECRET,
  grant_types: ['client_credentials', 'authorization_code', 'refresh_token'],
  scopes: ['openid', 'profile', 'email', 'admin', 'read', 'write'],
  capabilities: ['token_introspection'],
} satisfies NonNullable<SeedInput['clients']>[number]

/**
 * Seed of `gatehouse dev`: users to sign in, clients to call an API, and an administrator. After a change,
 * run `bun run seed:generate`, which writes the rows of the prepared database (seed-image.ts).
 */
export const defaultSeed = {
  users: [
    {
      id: 'usr_0190a11c-e000-7000-8000-000000000001',
      organization: 'default',
      username: 'alice',
      email: 'alice@example.com',
      first_name: 'Alice',
      last_name: 'Example',
      email_verified: true,
      roles: ['user'],
      password_hash: HASH,
    },
    {
      id: 'usr_0190ad31-4000-7000-8000-000000000002',
      organization: 'default',
      username: 'admin',
      email: 'admin@example.com',
      first_name: 'Ada',
      last_name: 'Administrator',
      email_verified: true,
      roles: ['user', 'admin'],
      password_hash: HASH,
    },
  ],
  clients: [
    {
      ...browser,
      organization: 'default',
      client_id: 'dev-web',
      name: 'Browser application',
      type: 'public',
      kind: 'spa',
      grant_types: ['authorization_code', 'refresh_token'],
      scopes: ['openid', 'profile', 'email', 'admin', 'read', 'write'],
    },
    SERVICE,
  ],
} satisfies SeedInput

/** True for the user alice of the default seed. */
export const isDefaultUser = ({ id }: { id?: string | undefined }): boolean => id === defaultSeed.users[0]?.id
