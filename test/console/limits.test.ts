/** Compares the limits of the console's fields with the API's answers. */
import { beforeEach, expect, test } from 'bun:test'
import type { Limit } from '#src/console/app/api-form.tsx'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { fillConsole } from '#test/support/console-screens.ts'
import { addClient } from '#test/support/people.ts'

let app: TestApp
let limits: Record<string, Record<string, Limit>>
/** The path of one object of each kind. The key is the same path with `*` in place of the id. */
const objects: Record<string, string> = { '/settings': '/settings' }

beforeEach(async () => {
  app = await startApp()
  await addClient(app, 'shop')
  for (const path of await fillConsole(app)) {
    const kind = /^\/[a-z-]+(?=\/)/.exec(path)?.[0]
    if (kind && !/\/\+?new$/.test(path)) objects[`${kind}/*`] = path
  }
  const { stdout } = Bun.spawnSync([process.execPath, 'src/console/field-limits.ts'])
  limits = JSON.parse(stdout.toString())
})

/**
 * Returns a body that has the value at `place`, such as `uris.0`. `0` stands for the first text of a list. At
 * the end of a place, `*` stands for the English text. Anywhere else, `*` stands for the first object of a
 * list.
 */
const bodyWith = (place: string, value: unknown): unknown => {
  const [first = '', ...rest] = place.split('.')
  if (place === '') return value
  if (first === '0') return [value]
  if (first === '*') return rest.length > 0 ? [bodyWith(rest.join('.'), value)] : { en: value }
  return { [first]: bodyWith(rest.join('.'), value) }
}

/** Returns only the refusals of this field, because the body may lack other required fields. */
const refusalsOf = async (operation: string, name: string, value: unknown): Promise<string[]> => {
  const [method = '', kind = ''] = operation.split(' ')
  const isProvider = kind.startsWith('/identity-providers') && method === 'POST'
  const types = !isProvider ? [{}] : ['oidc', 'oauth2', 'saml'].map(type => ({ type }))
  const fields = name.replace(/\*$/, 'en').replaceAll('*', '0')
  const found: string[] = []
  for (const type of types) {
    const body = { ...type, ...(bodyWith(name, value) as object) }
    const answer = await app.admin(method as 'PUT', objects[kind] ?? kind, body)
    const details: Json[] = answer.body.details ?? []
    const own = details.filter(({ field, code }) => field === fields && code !== 'unknown_field')
    found.push(...own.map(({ message }) => message))
  }
  return found
}

type Case = [operation: string, name: string, limit: Limit]

const each = (): Case[] =>
  Object.entries(limits).flatMap(([operation, fields]) =>
    Object.entries(fields).flatMap(([name, limit]): Case[] => [
      [operation, name, limit],
      ...(limit.item ? [[operation, `${name}.0`, limit.item] satisfies Case] : []),
    ]),
  )

test('CON-12 the console knows the limits of each operation that has a form', () => {
  expect(Object.keys(limits).sort()).toEqual([
    'POST /apis',
    'POST /clients',
    'POST /groups',
    'POST /identity-providers',
    'POST /initial-access-tokens',
    'POST /invitations',
    'POST /organizations',
    'POST /roles',
    'POST /users',
    'POST /webhooks',
    'PUT /apis/*',
    'PUT /clients/*',
    'PUT /groups/*',
    'PUT /identity-providers/*',
    'PUT /organizations/*',
    'PUT /roles/*',
    'PUT /settings',
    'PUT /users/*',
    'PUT /webhooks/*',
  ])
})

test('CON-12 the forms of a user require what the API requires', () => {
  for (const operation of ['POST /users', 'PUT /users/*']) {
    const fields = Object.entries(limits[operation] ?? {})
    expect(fields.flatMap(([name, { required }]) => (required ? [name] : []))).toEqual(['username', 'email'])
  }
})

test('CON-12 the API refuses what a limit excludes, in the words of the console', async () => {
  for (const [operation, name, { maxLength, pattern, message, min, max, maxItems }] of each()) {
    const place = `${operation} ${name}`
    if (message !== undefined) {
      const long = maxLength === undefined ? '\0' : 'x'.repeat(maxLength + 1)
      const text = maxItems === undefined ? long : Array.from({ length: maxItems + 1 }, (_, n) => `x${n}`)
      expect([place, await refusalsOf(operation, name, text)]).toEqual([
        place,
        expect.arrayContaining([message]),
      ])
    }
    if (pattern !== undefined) expect([place, new RegExp(pattern).test('\0')]).toEqual([place, false])
    for (const number of [(min ?? NaN) - 1, (max ?? NaN) + 1])
      if (Number.isFinite(number))
        expect([place, number, (await refusalsOf(operation, name, number)).length > 0]).toEqual([
          place,
          number,
          true,
        ])
  }
})

test('CON-12 a required field is refused when it is empty, and the longest text is not too long', async () => {
  for (const [operation, name, { required, maxLength, message, min, max }] of each()) {
    const place = `${operation} ${name}`
    const empty = min === undefined ? '' : null
    if (required)
      expect([place, (await refusalsOf(operation, name, empty)).length > 0]).toEqual([place, true])
    if (maxLength !== undefined && /^(?:A line|A text)/.test(message ?? ''))
      expect([place, await refusalsOf(operation, name, 'x'.repeat(maxLength))]).not.toEqual([
        place,
        expect.arrayContaining([message]),
      ])
    for (const number of [min, max])
      if (number !== undefined)
        expect([place, await refusalsOf(operation, name, number)]).toEqual([place, []])
  }
})
