import { expect, test } from 'bun:test'
import { filteredEventsAfter, firstUsers } from '#src/dev/store.ts'
import { startApp } from '#test/support/app.ts'
import { addOrganization, addUser } from '#test/support/people.ts'

test('dev 6: the lists have no users and events of an organization that is being removed', async () => {
  const app = await startApp()
  const { id } = await addOrganization(app, 'acme')
  await addUser(app, 'alice', { organization_id: id })
  const names = async () =>
    (await app.context.store.read(q => firstUsers(q, undefined, 100))).map(({ username }) => username)
  const events = async () =>
    (await app.context.store.read(q => filteredEventsAfter(q, undefined, {}))).filter(
      ({ event }) => event.organization_id === id,
    )
  expect(await names()).toContain('alice')
  expect(await events()).not.toEqual([])
  expect((await app.admin('DELETE', `/organizations/${id}`)).status).toBe(204)
  expect(await names()).not.toContain('alice')
  expect(await events()).toEqual([])
})
