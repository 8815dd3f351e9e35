import { describe, expect, test } from 'bun:test'
import {
  type AuthorizeClient,
  parseAuthorizeRequest,
  parseClientId,
  parseTarget,
} from '#src/protocol/oauth/authorize-request.ts'
import { parseParameters } from '#src/protocol/oauth/parameters.ts'
import { refusal } from './refusal.ts'

const client: AuthorizeClient = {
  client_id: 'shop',
  redirect_uris: ['https://app.example/cb', 'http://127.0.0.1/cb'],
  grant_types: ['authorization_code'],
  scopes: ['openid', 'profile', 'email'],
  capabilities: [],
  organization_id: 'org_a',
}
const code_challenge = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
const valid: Record<string, string> = {
  response_type: 'code',
  client_id: 'app',
  redirect_uri: 'https://app.example/cb',
  state: 's1',
  code_challenge,
  code_challenge_method: 'S256',
}

const query = (changes: Record<string, string | undefined> = {}) => {
  const all = Object.entries({ ...valid, ...changes })
  return all
    .flatMap(([name, value]) => (value === undefined ? [] : `${name}=${encodeURIComponent(value)}`))
    .join('&')
}

/**
 * Runs all steps of validation. Returns `ok`, `page CODE` for a refusal on a page, or `redirect CODE STATE`
 * for a refusal that goes to the client.
 */
const authorize = (raw: string, registered: AuthorizeClient = client) => {
  const parameters = parseParameters(raw)
  let target: ReturnType<typeof parseTarget> | undefined
  const page = refusal(() => {
    parseClientId(parameters)
    target = parseTarget(parameters, registered)
  })
  if (!target) return `page ${page}`
  const { state } = target
  const code = refusal(() =>
    parseAuthorizeRequest(parameters, registered, target as NonNullable<typeof target>),
  )
  return code === 'none' ? 'ok' : `redirect ${code} ${state}`
}

const request = (changes: Record<string, string | undefined> = {}, registered = client) => {
  const parameters = parseParameters(query(changes))
  return parseAuthorizeRequest(parameters, registered, parseTarget(parameters, registered))
}

test('the minimal request, with its defaults', () => {
  expect(request({ state: undefined })).toEqual({
    response_type: 'code',
    client_id: 'app',
    redirect_uri: 'https://app.example/cb',
    state: undefined,
    response_mode: undefined,
    scopes: ['openid'],
    code_challenge,
    organization_id: 'org_a',
    any_organization: false,
    prompts: [],
    ui_locales: [],
    acr_values: [],
    nonce: undefined,
    login_hint: undefined,
    max_age: undefined,
    id_token_hint: undefined,
  })
})

test('a request with every parameter survives storage as JSON', () => {
  const full = request({
    scope: 'openid email',
    nonce: 'n',
    prompt: 'login consent',
    login_hint: 'ann@a.example',
    organization_id: 'org_a',
    max_age: '300',
    ui_locales: 'de-CH en',
    acr_values: 'urn:mfa pwd',
    id_token_hint: 'a.b.c',
    response_mode: 'query',
    claims: '{}',
    display: 'touch',
  })
  expect(JSON.parse(JSON.stringify(full))).toEqual({
    ...valid,
    code_challenge_method: undefined,
    scopes: ['openid', 'email'],
    nonce: 'n',
    prompts: ['login', 'consent'],
    login_hint: 'ann@a.example',
    organization_id: 'org_a',
    any_organization: false,
    max_age: 300,
    ui_locales: ['de-CH', 'en'],
    acr_values: ['urn:mfa', 'pwd'],
    id_token_hint: 'a.b.c',
  })
})

describe('refused with a page, whatever else is wrong', () => {
  test.each([
    ['O-40 client_id twice', `${query()}&client_id=app`],
    ['O-40 redirect_uri twice', `${query()}&redirect_uri=${encodeURIComponent('https://evil.example')}`],
    ['client_id missing', query({ client_id: undefined })],
    ['client_id empty', query({ client_id: '' })],
    ['redirect_uri missing', query({ redirect_uri: undefined })],
    ['redirect_uri malformed', query({ redirect_uri: undefined }).concat('&redirect_uri=%ff')],
    ['O-02 another redirect_uri', query({ redirect_uri: 'https://app.example/cb/' })],
    [
      'O-05 another redirect_uri and a bad response_type',
      query({ redirect_uri: 'https://e.example', response_type: 'x' }),
    ],
    [
      'O-05 another redirect_uri and a bad scope',
      query({ redirect_uri: 'https://e.example', scope: 'other' }),
    ],
    [
      'O-05 another redirect_uri and a repeated state',
      `${query({ redirect_uri: 'https://e.example' })}&state=2`,
    ],
  ])('%s', (_, raw) => expect(authorize(raw)).toBe('page invalid_request'))
})

test('O-03 the loopback port is stored as requested', () => {
  expect(request({ redirect_uri: 'http://127.0.0.1:49152/cb' }).redirect_uri).toBe(
    'http://127.0.0.1:49152/cb',
  )
})

describe('refused by redirect, with the state', () => {
  test.each<[string, Record<string, string | undefined>, string]>([
    ['O-06 token', { response_type: 'token' }, 'unsupported_response_type'],
    ['O-06 id_token', { response_type: 'id_token' }, 'unsupported_response_type'],
    ['O-06 code token', { response_type: 'code token' }, 'unsupported_response_type'],
    ['O-06 case', { response_type: 'Code' }, 'unsupported_response_type'],
    ['O-06 empty', { response_type: '' }, 'unsupported_response_type'],
    ['O-06 missing', { response_type: undefined }, 'invalid_request'],
    ['O-07 no challenge', { code_challenge: undefined }, 'invalid_request'],
    ['O-07 method plain', { code_challenge_method: 'plain' }, 'invalid_request'],
    ['O-07 method s256', { code_challenge_method: 's256' }, 'invalid_request'],
    ['O-07 method absent', { code_challenge_method: undefined }, 'invalid_request'],
    ['O-07 42 characters', { code_challenge: code_challenge.slice(1) }, 'invalid_request'],
    ['O-07 129 characters', { code_challenge: 'a'.repeat(129) }, 'invalid_request'],
    ['O-07 illegal characters', { code_challenge: code_challenge.replace('-', '+') }, 'invalid_request'],
    ['O-07 padding', { code_challenge: `${code_challenge}=` }, 'invalid_request'],
    ['O-45 fragment', { response_mode: 'fragment' }, 'invalid_request'],
    ['O-45 case', { response_mode: 'Form_Post' }, 'invalid_request'],
    ['O-45 query.jwt', { response_mode: 'query.jwt' }, 'invalid_request'],
    ['O-45 junk', { response_mode: 'x' }, 'invalid_request'],
    ['O-47 none login', { prompt: 'none login' }, 'invalid_request'],
    ['O-47 consent none', { prompt: 'consent none' }, 'invalid_request'],
    ['O-47 unknown', { prompt: 'create' }, 'invalid_request'],
    ['O-47 one unknown', { prompt: 'login create' }, 'invalid_request'],
    ['O-47 twice', { prompt: 'login login' }, 'invalid_request'],
    ['O-47 every one and one more', { prompt: 'login consent select_account x y z' }, 'invalid_request'],
    ['O-49 negative', { max_age: '-1' }, 'invalid_request'],
    ['O-49 letters', { max_age: 'abc' }, 'invalid_request'],
    ['O-49 10^20', { max_age: `1${'0'.repeat(20)}` }, 'invalid_request'],
    ['O-49 2^31', { max_age: '2147483648' }, 'invalid_request'],
    ['O-49 fraction', { max_age: '1.5' }, 'invalid_request'],
    ['O-49 exponent', { max_age: '1e3' }, 'invalid_request'],
    ['O-49 space', { max_age: ' 1' }, 'invalid_request'],
    ['O-53 request', { request: 'e30.e30.' }, 'request_not_supported'],
    ['O-53 request_uri', { request_uri: 'https://evil.example/r' }, 'request_uri_not_supported'],
    ['O-53 registration', { registration: '{}' }, 'registration_not_supported'],
    [
      'O-53 request without response_type',
      { request: 'x', response_type: undefined },
      'request_not_supported',
    ],
    ['a scope that the client lacks', { scope: 'openid admin' }, 'invalid_scope'],
    ['a malformed scope', { scope: 'openid "' }, 'invalid_scope'],
    ['another organization', { organization_id: 'org_b' }, 'invalid_request'],
    ['a nonce of 1025 characters', { nonce: 'n'.repeat(1025) }, 'invalid_request'],
    ['an endless id_token_hint', { id_token_hint: 'a'.repeat(8193) }, 'invalid_request'],
  ])('%s', (_, changes, code) => expect(authorize(query(changes))).toBe(`redirect ${code} s1`))

  test.each([
    ['O-40 scope twice', `${query()}&scope=openid&scope=openid`, 's1'],
    ['O-40 an unknown parameter twice', `${query()}&x=1&x=2`, 's1'],
    ['O-58 NUL in nonce', `${query()}&nonce=%00`, 's1'],
    ['O-58 a broken name', `${query()}&%zz=1`, 's1'],
    ['O-40 state twice: no state is right', `${query()}&state=s2`, 'undefined'],
    ['O-58 broken state', `${query({ state: undefined })}&state=%zz`, 'undefined'],
  ])('%s', (_, raw, state) => expect(authorize(raw)).toBe(`redirect invalid_request ${state}`))

  test('a client without the grant', () => {
    expect(authorize(query(), { ...client, grant_types: ['client_credentials'] })).toBe(
      'redirect unauthorized_client s1',
    )
  })

  test('AUT-34 a client without openid, when no scope is sent', () => {
    expect(authorize(query(), { ...client, scopes: ['profile'] })).toBe('redirect invalid_scope s1')
    expect(authorize(query({ scope: 'profile' }), { ...client, scopes: ['profile'] })).toBe('ok')
  })

  test('a state over 4096 characters, which is still returned', () => {
    const state = 'x'.repeat(4097)
    expect(authorize(query({ state }))).toBe(`redirect invalid_request ${state}`)
  })
})

describe('accepted as requested', () => {
  test.each(['a b&c=d', '%00', '\0', 'é漢😀', '</script>', 'x'.repeat(4096)])('O-25 state %p', state => {
    expect(request({ state }).state).toBe(state)
  })

  test('an empty state counts as none', () => expect(request({ state: '' }).state).toBeUndefined())

  test.each([
    ['0', 0],
    ['1', 1],
    ['2147483647', 2147483647],
    ['', undefined],
  ])('O-49 max_age %p', (max_age, expected) => expect(request({ max_age }).max_age).toBe(expected))

  test.each([
    ['none', ['none']],
    ['login consent select_account', ['login', 'consent', 'select_account']],
    ['', []],
  ])('O-47 prompt %p', (prompt, expected) => expect(request({ prompt }).prompts).toEqual(expected as never))

  test('another organization, with the capability', () => {
    const capable = { ...client, capabilities: ['cross_organization'] }
    expect(request({ organization_id: 'org_b' }, capable)).toMatchObject({
      organization_id: 'org_b',
      any_organization: false,
    })
    expect(request({}, capable)).toMatchObject({ organization_id: 'org_a', any_organization: true })
    expect(request({ id_token_hint: 'hint' }, capable).any_organization).toBe(false)
  })
})

describe('the response mode', () => {
  const native = {
    ...client,
    redirect_uris: ['com.example.app:/cb', 'HTTPS://app.example/cb', 'http://127.0.0.1/cb'],
  }
  const [form, loopback] = [{ response_mode: 'form_post' }, { redirect_uri: 'http://127.0.0.1:49152/cb' }]
  const read = (changes: Record<string, string | undefined>, more = '') => {
    const parameters = parseParameters(query({ ...loopback, ...changes }) + more)
    const target = parseTarget(parameters, native)
    const refused = refusal(() => parseAuthorizeRequest(parameters, native, target))
    return [target.response_mode, refused]
  }

  test.each<[string, Record<string, string>, string, (string | undefined)[]]>([
    ['O-45 none', {}, '', [undefined, 'none']],
    ['O-45 query', { response_mode: 'query' }, '', [undefined, 'none']],
    ['O-45 empty', { response_mode: '' }, '', [undefined, 'none']],
    ['FRM-01 form_post to a loopback address', form, '', ['form_post', 'none']],
    [
      'FRM-01 form_post to https, written in capitals',
      { redirect_uri: 'HTTPS://app.example/cb', ...form },
      '',
      ['form_post', 'none'],
    ],
    ['FRM-05 form_post of a refused request', { ...form, prompt: 'x' }, '', ['form_post', 'invalid_request']],
    [
      'FRM-08 form_post to a private-use scheme',
      { ...form, redirect_uri: 'com.example.app:/cb' },
      '',
      [undefined, 'invalid_request'],
    ],
    ['FRM-06 form_post of a tab', { ...form, state: 'a\tb' }, '', ['form_post', 'none']],
    ['O-40 form_post, then query', form, '&response_mode=query', [undefined, 'invalid_request']],
    ['FRM-05 state twice: form_post without a state', form, '&state=s2', ['form_post', 'invalid_request']],
  ])('%s', (_, changes, more, expected) => expect(read(changes, more)).toEqual(expected))

  test.each(['a\nb', 'a\rb', 'a\r\nb', 'a\0b'])('FRM-08 form_post of the state %j', state => {
    expect(read({ ...form, state })).toEqual([undefined, 'invalid_request'])
  })

  test('FRM-07 is stored with the request; query adds nothing to it', () => {
    expect(JSON.parse(JSON.stringify(request(form))).response_mode).toBe('form_post')
    expect(JSON.stringify(request({ response_mode: 'query' }))).not.toContain('response_mode')
  })
})

describe('accepted as a hint only', () => {
  test.each([
    ['O-51 HTML', '<b>ann</b>', '<b>ann</b>'],
    ['O-51 320 characters', 'a'.repeat(320), 'a'.repeat(320)],
    ['O-51 10 KB', 'a'.repeat(10_240), undefined],
    ['O-51 a control character', 'ann\u001b[31m', undefined],
    ['O-51 a line break', 'ann\r\nx: y', undefined],
    ['O-51 a right-to-left override', 'ann\u202egnp.exe', undefined],
  ])('%s', (_, login_hint, expected) => expect(request({ login_hint }).login_hint).toBe(expected))

  test.each([
    ['O-52 junk', '<x> -- 1_2 de  en-US-x-y', ['de', 'en-US-x-y']],
    ['O-52 1000 tags', 'fr '.repeat(1000), Array(16).fill('fr')],
    ['O-52 one endless tag', 'x'.repeat(50_000), []],
  ])('%s in ui_locales', (_, ui_locales, expected) =>
    expect(request({ ui_locales }).ui_locales).toEqual(expected),
  )

  test.each([
    ['O-52 junk', '<x>  1', ['<x>', '1']],
    ['O-52 1000 values', 'a '.repeat(1000), Array(16).fill('a')],
    ['O-52 one endless value', 'x'.repeat(50_000), []],
  ])('%s in acr_values', (_, acr_values, expected) =>
    expect(request({ acr_values }).acr_values).toEqual(expected),
  )
})
