import { z } from 'zod'
import { mappingOf } from '#src/directory/claim-mapping.ts'
import {
  flag,
  integer,
  line,
  oneOf,
  owner,
  readOnly,
  readOnlyStored,
  set,
  stored,
} from '#src/directory/fields.ts'
import { example } from '#src/http/example.ts'
import { listOf, listQuery, ofOrganization } from '#src/http/list.ts'
import { DAY, SECOND } from '#src/lib/duration.ts'
import { permissions } from '#src/lib/permission.ts'
import { iso } from '#src/lib/text.ts'
import { openidScopes } from '#src/protocol/oauth/resource.ts'
import { isScopeToken } from '#src/protocol/oauth/scope.ts'
import { signingAlgs } from '#src/protocol/oidc/signing-algs.ts'
import type { Api as Row } from './store.ts'

const URI =
  'An absolute URI such as https://api.example.com, without fragment, wildcard, credentials or a trailing //.'

/**
 * https://www.rfc-editor.org/rfc/rfc8707#section-2. The identifier cannot be changed, because the services of
 * the API compare the audience of tokens with it.
 */
const identifier = z
  .string(URI)
  .max(255, 'At most 255 characters.')
  .refine(
    text =>
      /^[A-Za-z][A-Za-z0-9+.-]*:[\x21-\x7e]+$/.test(text) &&
      !/["#*<>\\^`{|}]|:\/\/[^/?]*@|\/\/$/.test(text) &&
      URL.canParse(text),
    URI,
  )
  .describe('Audience of the tokens of the API, unique in the instance. It cannot be changed.')

// Names that have another meaning in the parameter `scope`: permissions, `admin` and `*` (all permissions),
// and the scopes of OpenID Connect.
const taken: ReadonlySet<string> = new Set([...permissions, ...openidScopes, 'admin', '*'])

const scopeName = z
  .string('A scope.')
  .max(128, 'At most 128 characters.')
  .refine(isScopeToken, 'A scope is printable ASCII without spaces, double quotes or backslashes.')
  .refine(
    text => !taken.has(text),
    'A scope must not have the name of a permission or of an OpenID Connect scope.',
  )
  .describe('Name in the parameter `scope`, unique in the API.')

/**
 * Maximum number of languages for the text of a scope. Each read of an API reads all its texts, so the limit
 * bounds the cost of a read. The pages of this server exist in fewer languages.
 */
const MAX_LANGUAGES = 30
const LANGUAGE = /^[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*$/
/** Maximum characters of a scope's text. The text is one line of the consent page. */
const MAX_TEXT = 128
const text = line(MAX_TEXT, 1)

/**
 * The schema is custom, because `z.record` would check all keys before it counts them, and would drop
 * `__proto__`.
 */
const texts = z
  .custom<Record<string, string>>(
    value =>
      typeof value === 'object' &&
      value !== null &&
      !Array.isArray(value) &&
      Object.keys(value).length <= MAX_LANGUAGES,
    `An object of at most ${MAX_LANGUAGES} texts by language.`,
  )
  .superRefine((given, issues) => {
    for (const [tag, value] of Object.entries(given)) {
      const message = LANGUAGE.test(tag)
        ? text.safeParse(value).error?.issues[0]?.message
        : 'A language tag such as de or pt-BR.'
      if (message) issues.addIssue({ code: 'custom', path: [tag], message })
    }
  })
  .meta({
    type: 'object',
    propertyNames: { type: 'string', pattern: LANGUAGE.source },
    additionalProperties: { type: 'string', minLength: 1, maxLength: MAX_TEXT },
  })

const Scope = z.strictObject({
  name: scopeName,
  texts: texts.default({}).describe('Text of the scope on the consent page, by language (BCP 47).'),
  role: line(128, 1)
    .nullable()
    .default(null)
    .describe('Role that a user needs to get the scope; null when none is needed.'),
  claims: mappingOf(z.string(), {
    rule: 'A path.',
    about:
      'Further claims of access tokens with this scope, by name. The value is a path, such as `user.attributes.tenant`.',
  }).default({}),
})

const client_id = line(128, 1)

const ApiClient = z.strictObject({
  client_id: client_id.describe('Client of the same organization.'),
  scopes: set(line(128, 1), 100).describe('Scopes of the API that the client may ask for.'),
})

const list = <T extends z.ZodType>(item: T) =>
  z.array(item, 'A list of at most 100 objects.').max(100, 'A list of at most 100 objects.')

export const writable = {
  name: line(128, 1).describe('Shown to administrators, and to people who are asked for consent.'),
  scopes: list(Scope).describe('Scopes that an application may ask for.'),
  clients: list(ApiClient).describe('Clients that may ask for tokens of the API.'),
  served_by: set(client_id, 100).describe(
    'Clients that may introspect tokens of the API; they need the capability `token_introspection`.',
  ),
  access_token_ttl: integer(60, DAY / SECOND)
    .nullable()
    .describe("Lifetime of tokens of the API in seconds; null: the client's `access_token_ttl`."),
  access_token_alg: oneOf(signingAlgs)
    .nullable()
    .describe("Algorithm of tokens of the API; null: the algorithm of the client's other access tokens."),
  open_to_dynamic_clients: flag.describe('Whether clients that no administrator registered may use the API.'),
}

const orders = {
  identifier: 'https://orders.example.com/',
  name: 'Orders',
  scopes: [
    {
      name: 'orders.read',
      texts: { en: 'Read your orders', de: 'Ihre Bestellungen lesen' },
      role: null,
      claims: {},
    },
  ],
}
const ordersAnswer = {
  ...orders,
  clients: [],
  served_by: [],
  access_token_ttl: 600,
  access_token_alg: null,
  open_to_dynamic_clients: false,
}

export const CreateApi = z
  .strictObject({
    identifier,
    name: writable.name,
    organization_id: owner,
    scopes: writable.scopes.default([]),
    clients: writable.clients.default([]),
    served_by: writable.served_by.default([]),
    access_token_ttl: writable.access_token_ttl.default(null),
    access_token_alg: writable.access_token_alg.default(null),
    open_to_dynamic_clients: writable.open_to_dynamic_clients.default(false),
  })
  .meta({ id: 'CreateApi', description: 'A new API.', example: { ...orders, access_token_ttl: 600 } })
export type CreateApi = z.output<typeof CreateApi>

export const UpdateApi = z
  .strictObject({
    ...z.object(writable).partial().shape,
    ...readOnlyStored,
    identifier: readOnly(z.string()),
  })
  .meta({
    id: 'UpdateApi',
    description: 'The fields of an API to change.',
    example: { access_token_ttl: 600 },
  })
export type UpdateApi = z.output<typeof UpdateApi>

export const ApiAnswer = z.object({ ...stored, identifier, ...writable }).meta({
  id: 'Api',
  description: 'A service that accepts only tokens issued for it (RFC 8707).',
  example: {
    id: example.api_id,
    ...ordersAnswer,
    organization_id: example.organization_id,
    created_at: example.time,
    updated_at: example.time,
  },
})

/** Converts an API into the form in which the admin API answers. */
export const apiAnswer = ({ identifier_key: _, ...api }: Row): z.output<typeof ApiAnswer> => ({
  ...api,
  scopes: api.scopes.map(({ claims = {}, ...scope }) => ({ ...scope, claims })),
  created_at: iso(api.created_at),
  updated_at: iso(api.updated_at),
})

export const ListApis = listQuery({ organization_id: ofOrganization })
export type ListApis = z.output<typeof ListApis>

export const ApiList = listOf('ApiList', ApiAnswer)
