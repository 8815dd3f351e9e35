import { describe, expect, test } from 'bun:test'
import type { z } from 'zod'
import { startApp } from '#test/support/app.ts'
import { refused } from '#test/support/callers.ts'
import { addUser } from '#test/support/people.ts'

const app = await startApp()
const shapeOf = (query: z.ZodType | undefined) => (query as z.ZodObject | undefined)?.shape ?? {}
/**
 * All list routes, so that the tests include each new route. The ids in the paths need not exist, because the
 * server checks the query first.
 */
const lists = app.routes
  .filter(({ method, query }) => method === 'GET' && 'limit' in shapeOf(query))
  .map(({ path, query }) => ({
    path: path.replace(/^\/api\/v1\/admin/, '').replace(/:\w+|\{\w+\}/g, 'nobody'),
    names: Object.keys(shapeOf(query)),
  }))
const statusOf = async (path: string): Promise<[string, number]> => [
  path,
  (await app.admin('GET', path)).status,
]

test('there is at least one list route', () => {
  expect(lists.length).toBeGreaterThan(8)
})

describe.each(lists)('$path', ({ path, names }) => {
  test.each([
    '0x10',
    '1e1',
    ' 5 ',
    '%205',
    '+5',
    '%2B5',
    '5.0',
    '-1',
    '',
    '0',
    '101',
    '٥',
    '1_0',
    'Infinity',
  ])('limit=%s is refused: it is not a number from 1 to 100', async limit => {
    expect(await statusOf(`${path}?limit=${limit}`)).toEqual([`${path}?limit=${limit}`, 422])
  })

  test('an empty filter is refused, and never means "no filter"', async () => {
    // An empty cursor is refused too, but as malformed (400). An empty search is allowed: it matches every
    // name.
    for (const name of names.filter(each => each !== 'cursor' && each !== 'search'))
      expect(await statusOf(`${path}?${name}=`)).toEqual([`${path}?${name}=`, 422])
    if (!path.includes('nobody')) expect((await statusOf(`${path}?cursor=`))[1]).toBe(400)
  })
})

test('a cursor is valid only for its list, filters and order', async () => {
  for (const username of ['alice', 'bob']) await addUser(app, username)
  const { next_cursor } = (await app.admin('GET', '/users?limit=1')).body.pagination
  const at = (path: string) => statusOf(`${path}limit=1&cursor=${next_cursor}`)
  expect((await at('/users?'))[1]).toBe(200)
  for (const path of ['/users?order=asc&', '/users?enabled=true&', '/users?search=b&'])
    expect((await at(path))[1]).toBe(400)
  const { pagination } = (await app.admin('GET', '/roles?limit=1')).body
  const others = lists.map(({ path }) => path).filter(path => path !== '/roles' && !path.includes('nobody'))
  for (const path of others) {
    const url = `${path}?limit=1&cursor=${pagination.next_cursor}`
    expect(await statusOf(url)).toEqual([url, 400])
  }
})

test('a parameter with the key __proto__ is unknown', async () => {
  for (const name of ['attribute.__proto__', 'attribute[__proto__]', '__proto__', '__proto__.x'])
    expect([name, (await app.admin('GET', `/users?${name}=x`)).status]).toEqual([name, 422])
  expect(refused(await app.admin('GET', '/users?attribute.__proto__=x'))).toEqual(['attribute.__proto__'])
})

test('sessions are not revoked by an empty filter', async () => {
  for (const name of ['user_id', 'client_id', 'organization_id'])
    expect((await app.admin('DELETE', `/sessions?${name}=`)).status).toBe(422)
})
