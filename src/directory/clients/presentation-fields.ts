import { z } from 'zod'
import { isWebUrl } from '#src/directory/fields.ts'
import { PICTURE, picture } from '#src/directory/organizations/schema.ts'
import { isLoopback } from '#src/protocol/oauth/redirect-uri.ts'

// People follow these links, so https is required: TLS prevents others from changing the page in transit. A
// call to a loopback address never leaves the machine, so a loopback address may use http.
const ADDRESS = 'An https URL without credentials or fragment, or http to a loopback address.'
const address = z
  .string(ADDRESS)
  .max(1024, 'At most 1024 characters.')
  .refine(text => isWebUrl(text) && (text.startsWith('https:') || isLoopback(text)), ADDRESS)
  .nullable()

/**
 * Fields of a client for the pages that people see (https://www.rfc-editor.org/rfc/rfc7591#section-2), and
 * the URL at which people start the application.
 */
export const presentationFields = {
  logo: picture.nullable().describe(`${PICTURE} Answers contain its URL.`),
  client_uri: address.describe(
    'Home page. The account page lists applications that have this field or `initiate_login_uri`.',
  ),
  policy_uri: address.describe('Privacy policy, linked where people consent.'),
  tos_uri: address.describe('Terms of use, linked where people consent.'),
  initiate_login_uri: address.describe(
    'URL that starts the application with a login. Gatehouse adds the parameter `iss` to it (OpenID Connect Core section 4).',
  ),
}

export const presentationDefaults = {
  logo: presentationFields.logo.default(null),
  client_uri: presentationFields.client_uri.default(null),
  policy_uri: presentationFields.policy_uri.default(null),
  tos_uri: presentationFields.tos_uri.default(null),
  initiate_login_uri: presentationFields.initiate_login_uri.default(null),
}
