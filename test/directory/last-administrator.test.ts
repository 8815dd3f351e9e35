/**
 * Tests that removing the last administrator of an organization requires a confirmation: the user name of
 * this administrator.
 */
import { beforeEach, expect, test } from 'bun:test'
import { applySeed } from '#src/seed/apply.ts'
import { readSeed } from '#src/seed/read.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { create } from '#test/support/callers.ts'
import { addOrganization, addUser } from '#test/support/people.ts'

let app: TestApp
beforeEach(async () => {
  app = await startApp()
})

const roles = ['admin']
const user = async (id: string): Promise<Json> => (await app.admin('GET', `/users/${id}`)).body
const refusal = (confirm: string) => ({
  status: 409,
  body: { error: 'last_administrator', status: 409, confirm, request_id: expect.any(String) },
})
const types = async () => (await app.events()).map(({ type }) => type)

test('USR-30 the last administrator is not disabled, stripped or deleted without the user name', async () => {
  const ada = await addUser(app, 'ada', { roles })
  await addUser(app, 'grace')
  await addUser(app, 'off', { roles, enabled: false })
  await app.events()
  const path = `/users/${ada.id}`
  const calls: [string, Json?][] = [
    ['PUT', { enabled: false }],
    ['PUT', { roles: ['user'] }],
    ['PUT', { enabled: false, roles: [] }],
    ['DELETE', undefined],
  ]
  for (const confirm of ['', '?confirm=grace', '?confirm=Ada', '?confirm=true'])
    for (const [method, body] of calls)
      expect(await app.admin(method, path + confirm, body)).toMatchObject(refusal('ada'))
  expect(await user(ada.id)).toEqual(ada)
  expect(await types()).toEqual([])

  expect((await app.admin('PUT', `${path}?confirm=ada`, { enabled: false })).status).toBe(200)
  // The organization has no administrator, so no confirmation is needed.
  expect((await app.admin('PUT', path, { roles: ['user'] })).status).toBe(200)
  expect(await types()).toEqual(['user.disabled', 'user.updated'])
  expect((await app.admin('DELETE', path)).status).toBe(204)
  expect(await types()).toEqual(['user.deleted'])
})

test('USR-30 no name is needed for another user, for another change, or while another administrator is enabled', async () => {
  const ada = await addUser(app, 'ada', { roles })
  const alan = await addUser(app, 'alan', { roles })
  const grace = await addUser(app, 'grace')
  const put = async (id: string, body: Json) => (await app.admin('PUT', `/users/${id}`, body)).status
  expect(await put(alan.id, { enabled: false })).toBe(200)
  expect(await put(ada.id, { first_name: 'Augusta', enabled: true, roles: ['admin', 'user'] })).toBe(200)
  expect(await put(grace.id, { enabled: false })).toBe(200)
  expect((await app.admin('DELETE', `/users/${grace.id}`)).status).toBe(204)
  expect((await app.admin('DELETE', `/users/${ada.id}`)).status).toBe(409)
  expect(await put(alan.id, { enabled: true })).toBe(200)
  expect((await app.admin('DELETE', `/users/${ada.id}`)).status).toBe(204)
})

test('USR-30 a group whose members are the last administrators is asked for by its name', async () => {
  const ada = await addUser(app, 'ada')
  const name = 'Staff & friends'
  const group = await create(app, '/groups', { name, roles })
  await app.admin('PUT', `/groups/${group.id}/members/${ada.id}`)
  await app.events()
  const path = `/groups/${group.id}`
  const calls: [string, string, string, Json?][] = [
    ['PUT', path, name, { roles: [] }],
    ['DELETE', path, name],
    ['DELETE', `${path}/members/${ada.id}`, 'ada'],
    ['PUT', `/users/${ada.id}`, 'ada', { enabled: false }],
    ['DELETE', `/users/${ada.id}`, 'ada'],
  ]
  for (const [method, path, confirm, body] of calls) {
    expect(await app.admin(method, path, body)).toMatchObject(refusal(confirm))
    expect(await app.admin(method, `${path}?confirm=nobody`, body)).toMatchObject(refusal(confirm))
  }
  expect((await app.admin('PUT', path, { description: 'All', roles })).status).toBe(200)
  expect((await app.admin('GET', path)).body).toMatchObject({ roles, member_count: 1 })
  expect(await types()).toEqual(['group.updated'])
  expect((await app.admin('DELETE', `${path}?${new URLSearchParams({ confirm: name })}`)).status).toBe(204)
  expect(await types()).toEqual(['group.deleted'])
})

test('USR-30 each organization keeps an administrator of its own; a deleted organization needs none', async () => {
  const { id: organization_id } = await addOrganization(app, 'acme')
  await addUser(app, 'ada', { roles })
  const bob = await addUser(app, 'bob', { roles, organization_id })
  expect(await app.admin('DELETE', `/users/${bob.id}`)).toMatchObject(refusal('bob'))
  expect((await app.admin('DELETE', '/organizations/acme')).status).toBe(204)
})

test('USR-30 two administrators who remove each other at once leave one of them', async () => {
  const changes: [string, Json?][] = [
    ['DELETE', undefined],
    ['PUT', { enabled: false }],
    ['PUT', { roles: [] }],
  ]
  for (const [n, [method, body]] of changes.entries()) {
    const pair = [await addUser(app, `ada-${n}`, { roles }), await addUser(app, `alan-${n}`, { roles })]
    const answers = await Promise.all(pair.map(({ id }) => app.admin(method, `/users/${id}`, body)))
    expect(answers.map(({ status }) => status >= 400).sort()).toEqual([false, true])
    expect(answers.find(({ status }) => status >= 400)).toMatchObject({
      status: 409,
      body: { error: 'last_administrator' },
    })
    const { body: left } = await app.admin('GET', '/users?role=admin&enabled=true')
    expect(left.pagination.total).toBe(1)
    const [{ id, username }] = left.data
    expect((await app.admin('DELETE', `/users/${id}?confirm=${username}`)).status).toBe(204)
  }
})

test('USR-30 a seed file is not asked: it may replace one administrator by another', async () => {
  const ada = await addUser(app, 'ada', { roles })
  await create(app, '/groups', { name: 'Staff', roles })
  const seed = {
    users: [{ username: 'ada', email: 'ada@example.com', roles: ['user'] }],
    groups: [{ name: 'Staff', roles: [] }],
  }
  expect(await applySeed(app.context, readSeed(seed))).toHaveLength(2)
  expect((await user(ada.id)).roles).toEqual(['user'])
})
