import { expect, test } from 'bun:test'
import { startApp } from '#test/support/app.ts'
import { callerOf } from '#test/support/callers.ts'
import { addOrganization } from '#test/support/people.ts'

test('API-30 a caller learns the permissions that it and its token have', async () => {
  const app = await startApp()
  const { id } = await addOrganization(app, 'acme')
  const token = await callerOf(app, id, ['users:read', 'profile:read'])
  expect((await app.admin('GET', '/me', undefined, token)).body).toEqual({
    kind: 'client',
    id: expect.stringMatching(/^caller-/),
    organization_id: id,
    instance: false,
    permissions: ['users:read', 'profile:read'],
  })
  const { body } = await app.admin('GET', '/me')
  expect([body.instance, body.permissions.includes('settings:update')]).toEqual([true, true])
})
