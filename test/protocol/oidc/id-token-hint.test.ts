import { describe, expect, test } from 'bun:test'
import { readIdTokenHint } from '#src/protocol/oidc/id-token-hint.ts'

const issuer = 'https://id.example'
const header = { alg: 'RS256', typ: 'JWT', kid: 'k' }
const payload = { iss: issuer, sub: 'u', aud: 'app', sid: 's', exp: 1 }

describe('O-50 an accepted hint', () => {
  test.each([
    ['long expired', header, payload, { issuer }],
    ['of this client', header, payload, { issuer, client_id: 'app' }],
    ['without typ', { alg: 'ES512' }, payload, { issuer }],
  ])('%s', (_, head, body, expected) => {
    expect(readIdTokenHint({ header: head, payload: body }, expected)).toEqual({
      sub: 'u',
      sid: 's',
      client_id: 'app',
    })
  })

  test('without a session', () => {
    const hint = readIdTokenHint({ header, payload: { ...payload, sid: undefined } }, { issuer })
    expect(hint).toEqual({ sub: 'u', sid: undefined, client_id: 'app' })
  })
})

describe('O-50 a refused hint', () => {
  test.each([
    ['alg none', { ...header, alg: 'none' }, payload],
    ['a keyed hash', { ...header, alg: 'HS256' }, payload],
    ['no alg', { typ: 'JWT' }, payload],
    ['other issuer', header, { ...payload, iss: 'https://evil.example' }],
    ['other client', header, { ...payload, aud: 'other' }],
    ['several audiences', header, { ...payload, aud: ['app'] }],
    ['no subject', header, { ...payload, sub: undefined }],
    ['an access token', { ...header, typ: 'at+jwt' }, payload],
    ['an access token that calls itself JWT', header, { ...payload, scope: '' }],
  ])('%s', (_, head, body) => {
    expect(readIdTokenHint({ header: head, payload: body }, { issuer, client_id: 'app' })).toBeUndefined()
  })
})
