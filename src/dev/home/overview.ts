import type { DevState } from '#src/dev/controls.ts'
import { isDefaultUser } from '#src/dev/default-seed.ts'
import { firstClients, firstUsers } from '#src/dev/store.ts'
import { roleNamesOf } from '#src/directory/users/store.ts'
import { CALLBACK, callbackUri, TRY } from './callback.ts'
import { type Html, markup } from './markup.ts'
import { code, type DevPage, HOME, table } from './page.ts'

/**
 * Maximum number of users, and of clients, on the page, so that the page stays readable. The user picker
 * searches all users.
 */
const SHOWN = 100

const endpoints: [name: string, path: string][] = [
  ['Issuer', ''],
  ['Discovery', '/.well-known/openid-configuration'],
  ['Authorization', '/oauth/authorize'],
  ['Token', '/oauth/token'],
  ['Userinfo', '/oauth/userinfo'],
  ['Key set', '/.well-known/jwks.json'],
]

const tryLink = (
  origin: string,
  { client_id, redirect_uris }: { client_id: string; redirect_uris: string[] },
): Html =>
  callbackUri(origin, redirect_uris)
    ? markup`<a class="button secondary small" data-testid="try-${client_id}" href="${TRY}?${String(new URLSearchParams({ client_id }))}">Sign in<span class="unseen"> to ${client_id}</span></a>`
    : markup``

/**
 * Returns the first page: clients, users and endpoints. For each client that has registered the callback
 * page, a link begins a login that ends on that page.
 */
export const overviewPage = async ({ context, secrets, password, exposed }: DevState): Promise<DevPage> => {
  const origin = context.config.url
  const { users, clients, slugs } = await context.store.read(async q => ({
    users: await roleNamesOf(q, await firstUsers(q, undefined, SHOWN)),
    ...(await firstClients(q, SHOWN)),
  }))
  return {
    title: 'Overview',
    current: HOME,
    body: markup`
<h2>Clients</h2>
<p>A client that has <code>${origin + CALLBACK}</code> among its redirect URIs can be tried here: the page redeems the code and shows the tokens.</p>
${table(
  ['Client id', 'Name', 'Type', 'Secret', 'Try'],
  clients.map(client => [
    code(client.client_id),
    markup`${client.name}`,
    markup`${client.type}`,
    secrets.has(client.client_id) ? code(secrets.get(client.client_id) ?? '') : markup`–`,
    tryLink(origin, client),
  ]),
  'There is no client.',
)}
<h2>Users</h2>
${users.some(isDefaultUser) ? markup`<p>The password of <code>alice</code> and <code>admin</code> is <code>${password}</code>.${exposed ? '' : ' The login page lets you choose a user without it.'}</p>` : ''}
${table(
  ['Name', 'Username', 'Email', 'Organization', 'Roles'],
  users.map(user => [
    markup`${user.first_name} ${user.last_name}`,
    code(user.username),
    markup`${user.email}`,
    code(slugs.get(user.organization_id) ?? ''),
    markup`${user.roles.join(', ')}${user.enabled ? '' : ' (disabled)'}`,
  ]),
  'There is no user.',
)}
<h2>Endpoints</h2>
${table(
  ['Endpoint', 'URL'],
  endpoints.map(([name, path]) => [markup`${name}`, code(origin + path)]),
  '',
)}`,
  }
}
