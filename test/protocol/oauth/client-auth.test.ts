import { describe, expect, test } from 'bun:test'
import { checkMethod, parseClientAuth } from '#src/protocol/oauth/client-auth.ts'
import { refusal } from './refusal.ts'

const form = (fields: Record<string, string> = {}) => new Map(Object.entries(fields))
const basic = (pair: string) => `Basic ${Buffer.from(pair).toString('base64')}`
const post = { client_id: 'app', client_secret: 's' }

test.each([
  ['nothing', undefined, {}, undefined],
  ['no header', null, {}, undefined],
  [
    'client_id alone',
    null,
    { client_id: 'app' },
    { method: 'none', client_id: 'app', client_secret: undefined },
  ],
  ['the form', null, post, { method: 'client_secret_post', ...post }],
  ['the header', basic('app:s'), {}, { method: 'client_secret_basic', ...post }],
  [
    'the header and the same client_id',
    basic('app:s'),
    { client_id: 'app' },
    { method: 'client_secret_basic', ...post },
  ],
])('sent by %s', (_, header, fields, expected) => {
  expect(parseClientAuth(header, form(fields as Record<string, string>))).toEqual(expected as never)
})

describe('O-37 two methods at once', () => {
  test.each([
    ['header and secret', basic('app:s'), { client_secret: 's' }],
    ['header and the same pair', basic('app:s'), post],
    ['header and another client_id', basic('app:s'), { client_id: 'other' }],
    ['a secret of nobody', null, { client_secret: 's' }],
  ])('%s', (_, header, fields) => {
    expect(refusal(() => parseClientAuth(header, form(fields as Record<string, string>)))).toBe(
      'invalid_request',
    )
  })
})

describe('O-38 HTTP Basic', () => {
  test.each([
    ['colon', 'a%3Ab:c%3Ad', 'a:b', 'c:d'],
    ['plus', 'app:a+b', 'app', 'a b'],
    ['percent', 'app:100%25', 'app', '100%'],
    ['outside ASCII', 'app:%C3%A9', 'app', 'é'],
    ['outside ASCII, not escaped', 'app:é', 'app', 'é'],
    ['more colons', 'app:a:b', 'app', 'a:b'],
    ['no secret', 'app:', 'app', ''],
  ])('%s', (_, pair, client_id, client_secret) => {
    const expected = { method: 'client_secret_basic', client_id, client_secret } as const
    expect(parseClientAuth(basic(pair), form())).toEqual(expected)
    expect(parseClientAuth(basic(pair).replace('Basic', 'bAsIc '), form())).toEqual(expected)
  })

  test.each([
    ['no colon', basic('app')],
    ['no client_id', basic(':s')],
    ['bad escape', basic('app:%zz')],
    ['bad escape in the id', basic('%:s')],
    ['escaped bytes that are not UTF-8', basic('app:%ff')],
    ['bytes that are not UTF-8', `Basic ${Buffer.from([97, 58, 255]).toString('base64')}`],
    ['NUL', basic('a%00:s')],
    ['no base64', 'Basic !!!!'],
    ['a letter too few', 'Basic YXBwOnM9Y'],
    ['padding within', 'Basic YXA=OnM='],
    ['space within', 'Basic YXBw OnM='],
    ['nothing', 'Basic'],
    ['nothing but a space', 'Basic '],
    ['another scheme', 'Bearer YXBwOnM='],
    ['an empty header', ''],
  ])('unreadable: %s', (_, header) => {
    expect(refusal(() => parseClientAuth(header, form({ client_id: 'app' })))).toBe('invalid_client')
  })
})

describe('O-39 which client may use which method', () => {
  const anonymous = { method: 'none', client_id: 'app', client_secret: undefined } as const
  const inForm = { method: 'client_secret_post', ...post } as const
  const inHeader = { method: 'client_secret_basic', ...post } as const
  const presented = { none: anonymous, client_secret_post: inForm, client_secret_basic: inHeader }
  test.each([
    ['public', 'none', 'none', 'none'],
    ['public', 'none', 'client_secret_post', 'invalid_client'],
    ['public', 'none', 'client_secret_basic', 'invalid_client'],
    ['public', 'client_secret_basic', 'client_secret_basic', 'invalid_client'],
    ['confidential', 'client_secret_basic', 'none', 'invalid_client'],
    ['confidential', 'client_secret_basic', 'client_secret_post', 'none'],
    ['confidential', 'client_secret_basic', 'client_secret_basic', 'none'],
    ['confidential', 'client_secret_post', 'none', 'invalid_client'],
    ['confidential', 'client_secret_post', 'client_secret_post', 'none'],
    ['confidential', 'client_secret_post', 'client_secret_basic', 'invalid_client'],
    ['confidential', 'none', 'none', 'invalid_client'],
  ] as const)('%s registered %s, sent by %s: %s', (type, token_endpoint_auth_method, method, expected) => {
    expect(refusal(() => checkMethod({ type, token_endpoint_auth_method }, presented[method]))).toBe(expected)
  })
})
