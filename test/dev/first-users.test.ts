import { expect, test } from 'bun:test'
import { firstUsers } from '#src/dev/store.ts'
import { startApp } from '#test/support/app.ts'
import { addOrganization, addUser } from '#test/support/people.ts'

test('dev 6: the list of users has no users of an organization that is being removed', async () => {
  const app = await startApp()
  const { id } = await addOrganization(app, 'acme')
  await addUser(app, 'alice', { organization_id: id })
  const names = async () =>
    (await app.context.store.read(q => firstUsers(q, undefined, 100))).map(({ username }) => username)
  expect(await names()).toContain('alice')
  expect((await app.admin('DELETE', `/organizations/${id}`)).status).toBe(204)
  expect(await names()).not.toContain('alice')
})
