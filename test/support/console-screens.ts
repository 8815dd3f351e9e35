import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import type { Json, TestApp } from './app.ts'
import { create } from './callers.ts'
import { addClient, addOrganization, addUser } from './people.ts'
import { addDynamicClient, addWaiting } from './routes.ts'

/** Varied people: short and long names, other scripts, no name at all. */
const people: [username: string, first_name: string, last_name: string][] = [
  ['grace.hopper', 'Grace', 'Hopper'],
  ['k.johnson', 'Katherine', 'Johnson'],
  ['margaret', 'Margaret', 'Hamilton'],
  ['wolfe', 'Friederike Wilhelmine Charlotte', 'von Hohenstein-Schwarzenberg zu Ahrensburg'],
  ['tanaka', '美咲', '田中'],
  ['layla', 'ليلى', 'العمراني'],
  ['zofia', 'Zofia', 'Wiśniewska'],
  ['build-agent', '', ''],
]

const clients: [client_id: string, name: string, kind: string][] = [
  ['field-app', 'Field service', 'native'],
  ['board', 'Planning board', 'spa'],
]

/** Fills an instance with one object of each kind. Returns the paths of all screens, below `/console`. */
export const fillConsole = async (app: TestApp): Promise<string[]> => {
  const user_attributes = ['string', 'boolean', 'array'].map(type => ({ name: `my-${type}`, type }))
  await app.admin('PUT', '/organizations/default', { settings: { user_attributes } })
  const users: Json[] = []
  for (const [username, first_name, last_name] of people)
    users.push(await addUser(app, username, { first_name, last_name }))
  for (const [client_id, name, kind] of clients)
    await addClient(app, client_id, { name, kind, type: 'public' })
  await addOrganization(app, 'northwind', { name: 'Northwind Traders' })
  await addOrganization(app, 'acme', { name: 'Acme Laboratories for Applied Sciences' })
  const role = await create(app, '/roles', {
    name: 'support',
    description: 'Helps people who are locked out',
    permissions: ['users:read', 'users:update', 'sessions:read'],
  })
  const group = await create(app, '/groups', { name: 'Warehouse', roles: ['user'] })
  const api = await create(app, '/apis', {
    identifier: 'https://orders.example.com',
    name: 'Orders',
    scopes: [{ name: 'orders.read', texts: { en: 'Read your orders' } }],
  })
  const provider = await create(app, '/identity-providers', {
    type: 'oidc',
    preset: 'google',
    name: 'Google',
    alias: 'google',
    client_id: 'northwind',
    client_secret: 'a-secret-of-another-server',
    enabled: false,
  })
  const webhook = await create(app, '/webhooks', {
    name: 'Warehouse',
    url: 'https://warehouse.example.com/events',
    events: ['user.*'],
  })
  await app.admin('PUT', `/users/${users[3].id}`, { enabled: false })
  await create(app, '/invitations', { delivery: 'link', max_uses: 20 })
  const invitation = await create(app, '/invitations', { delivery: 'link', email: 'ida@example.com' })
  await addWaiting(app, DEFAULT_ORGANIZATION)
  await addDynamicClient(app, DEFAULT_ORGANIZATION)
  return [
    '',
    '/users',
    `/users/${users[0].id}`,
    '/users/new',
    '/invitations',
    `/invitations/${invitation.id}`,
    '/registrations',
    '/clients',
    '/clients/shop',
    '/clients/+new',
    '/dynamic-clients',
    '/apis',
    `/apis/${api.id}`,
    '/sessions',
    '/roles',
    `/roles/${role.id}`,
    '/groups',
    `/groups/${group.id}`,
    '/organizations',
    '/organizations/default',
    '/looks/default',
    '/identity-providers',
    `/identity-providers/${provider.alias}`,
    '/webhooks',
    `/webhooks/${webhook.id}`,
    '/settings',
    '/events',
    '/guide',
    '/guide/connect',
    '/guide/settings',
  ]
}
