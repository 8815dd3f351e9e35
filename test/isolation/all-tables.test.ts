/** Walks all tables. A table that these tests do not cover makes a test fail. */
import { expect, test } from 'bun:test'
import { type Column, getTableColumns } from 'drizzle-orm'
import { setPicture } from '#src/directory/users/picture.ts'
import { purge } from '#src/operations/purge.ts'
import type { Picture } from '#src/pages/picture.ts'
import { copiedTables } from '#src/storage/transfer/copy.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { addClient, addOrganization, addUser, authorizeUrl, signIn } from '#test/support/people.ts'
import { png } from '#test/support/photos.ts'

type Table = Parameters<typeof getTableColumns>[0]

const tablesWith = (app: TestApp, column: string) =>
  app.context.store.read(async q =>
    Object.entries(q.tables).flatMap(([name, table]) =>
      column in getTableColumns(table as Table) ? [name] : [],
    ),
  )

/** Lists the tables in which a column has this value. */
const tablesNaming = (app: TestApp, column: string, id: string) =>
  app.context.store.read(async q => {
    const found: string[] = []
    for (const [name, table] of Object.entries(q.tables)) {
      const rows: Json[] = await q.select().from(table)
      if (rows.some(row => row[column] === id)) found.push(name)
    }
    return found
  })

const inventedValue = (name: string, { dataType }: Column, table: string): unknown => {
  if (dataType === 'boolean') return false
  if (dataType === 'number' || dataType === 'bigint') return 2_000_000_000_000
  if (dataType === 'json') return []
  return dataType === 'string' ? `${table}-${name}` : Buffer.from('x')
}

/**
 * Adds a row to each table that refers to users or organizations. The row has the user and the organization
 * in `known`. A table that already has such a row gets no further row.
 */
const inventRows = (app: TestApp, known: Record<string, string>): Promise<void> =>
  app.context.store.write(async tx => {
    for (const [name, table] of Object.entries(tx.tables)) {
      const columns = getTableColumns(table as Table)
      const owner = ['user_id', 'organization_id'].find(column => column in columns)
      const rows: Json[] = owner ? await tx.select().from(table) : []
      if (!owner || rows.some(row => row[owner] === known[owner])) continue
      const row = Object.entries(columns).flatMap(([field, column]) => {
        if (field in known) return [[field, known[field]]]
        if (column.hasDefault || !column.notNull) return []
        return [[field, inventedValue(field, column, name)]]
      })
      await tx.insert(table as typeof tx.tables.users).values(Object.fromEntries(row))
    }
  })

/** Adds a person of a tenant. The person has accepted the tenant's terms and has a picture. */
const member = async (app: TestApp) => {
  const terms = { version: '1', text: 'Be kind.' }
  const { id: organization_id } = await addOrganization(app, 'acme', { settings: { terms } })
  await addClient(app, 'shop', { organization_id })
  const user = await addUser(app, 'ada', { organization_id })
  const browser = openBrowser(app)
  const page = await signIn(browser, await browser.get(authorizeUrl('shop')), 'ada')
  await browser.submit(page, { accept: '1' }, '/oauth/terms')
  await setPicture(
    app.context,
    user.id,
    { type: 'png', bytes: png() as Picture['bytes'] },
    { actor: { id: user.id, email: user.email }, client_info: { ip_address: '', user_agent: '' } },
  )
  return { user, organization_id, browser }
}

/** Adds a person of a tenant, and a row to each table that names people or organizations. */
const everywhere = async (app: TestApp) => {
  const { user, organization_id } = await member(app)
  const group = await create(app, '/groups', { name: 'Staff', organization_id })
  const invitation = await create(app, '/invitations', { delivery: 'link', organization_id })
  await inventRows(app, {
    user_id: user.id,
    organization_id,
    client_id: 'shop',
    group_id: group.id,
    invitation_id: invitation.id,
  })
  return { user, organization_id }
}

/** For each table: the part of a download that has the rows of this table. */
const downloaded: Record<string, string> = {
  consents: 'applications',
  external_accounts: 'external_accounts',
  factors: 'factors',
  logins: 'browsers',
  pictures: 'user',
  remembered_browsers: 'remembered_browsers',
  sessions: 'sessions',
  terms_acceptances: 'terms',
  user_roles: 'user',
}
/** For each table that names people but is not part of a download: the reason. */
const leftOut: Record<string, string> = {
  devices: 'hashes of cookies',
  email_codes: 'a hash, for ten minutes',
  group_members: 'groups are a matter of the organization',
  invitation_uses: 'in the events',
  invitations: 'made by administrators',
  links: 'hashes, for half an hour or a day',
  logouts: 'messages on their way to applications',
  mails: 'messages on their way to the person',
  recovery_codes: 'hashes',
  user_attributes: 'hashes of the attributes, for searches',
  waiting_users: 'cannot sign in',
}

test('PEO-38 each table with rows of people has its part in the download of own data, or a reason', async () => {
  const app = await startApp()
  const { browser } = await member(app)
  const known = Object.keys({ ...downloaded, ...leftOut })
  expect(known.toSorted()).toEqual((await tablesWith(app, 'user_id')).toSorted())
  const answer = await browser.submit(await browser.get('/account/data'), {}, '/account/data/download')
  const data = JSON.parse(answer.html)
  expect(Object.keys(data)).toEqual(expect.arrayContaining(Object.values(downloaded)))
  expect(data.terms).toMatchObject([{ version: '1' }])
  expect(data.user).toMatchObject({ picture: expect.stringContaining('data:image/png'), roles: ['user'] })
})

/**
 * Tables whose rows stay when the user is deleted, because applications still have to receive the end of a
 * session. These rows name a person only by id.
 */
const OUTBOX = ['logouts']

test('R-20 a deleted user leaves no row in any table', async () => {
  const app = await startApp()
  const { user } = await everywhere(app)
  expect(await tablesNaming(app, 'user_id', user.id)).toEqual(await tablesWith(app, 'user_id'))
  expect((await app.admin('DELETE', `/users/${user.id}`)).status).toBe(204)
  await purge(app.context)
  expect(await tablesNaming(app, 'user_id', user.id)).toEqual(OUTBOX)
  expect(await tablesNaming(app, 'id', user.id)).toEqual([])
})

test('API-17 a deleted organization leaves no row in any table, nor do its users', async () => {
  const app = await startApp()
  const { user, organization_id } = await everywhere(app)
  expect(await tablesNaming(app, 'organization_id', organization_id)).toEqual(
    await tablesWith(app, 'organization_id'),
  )
  expect((await app.admin('DELETE', `/organizations/${organization_id}`)).status).toBe(204)
  await purge(app.context)
  expect(await tablesNaming(app, 'organization_id', organization_id)).toEqual(OUTBOX)
  expect(await tablesNaming(app, 'user_id', user.id)).toEqual(OUTBOX)
  expect(await tablesNaming(app, 'id', organization_id)).toEqual([])
})

test('each table is copied to the other engine', async () => {
  const app = await startApp()
  const all = await app.context.store.read(async q => Object.keys(q.tables))
  expect(copiedTables.map(({ name }) => name)).toEqual(expect.arrayContaining(all))
})
