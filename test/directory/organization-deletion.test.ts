import { expect, test } from 'bun:test'
import { startApp } from '#test/support/app.ts'
import { addClient, addOrganization } from '#test/support/people.ts'
import { hearStatements } from '#test/support/statements.ts'

test('ORG-12 the deletion of an organization with many clients takes few statements and reads no long columns', async () => {
  const app = await startApp()
  const { id: organization_id } = await addOrganization(app, 'acme')
  const backchannel_logout_uri = 'https://shop.example/logout'
  for (let i = 0; i < 30; i++)
    await addClient(app, `shop-${i}`, { organization_id, ...(i === 7 && { backchannel_logout_uri }) })
  await app.events()
  const heard: string[] = []
  const stop = hearStatements(text => heard.push(text))
  expect((await app.admin('DELETE', `/organizations/${organization_id}`)).status).toBe(204)
  stop()
  expect(heard.filter(text => /^insert into "purges"/i.test(text))).toHaveLength(2)
  expect(heard.find(text => /^delete from "clients"/i.test(text))).not.toContain('redirect_uris')
  const purges = await app.context.store.read(q => q.select().from(q.tables.purges))
  const clients = purges.filter(({ kind }) => kind === 'client')
  expect(clients).toHaveLength(30)
  expect(clients.flatMap(({ id, logout }) => (logout ? [[id, logout.uri]] : []))).toEqual([
    ['shop-7', backchannel_logout_uri],
  ])
  expect((await app.events()).map(({ type }) => type)).toEqual(['organization.deleted'])
})
