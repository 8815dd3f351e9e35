import { describe, expect, test } from 'bun:test'
import { startAuthorize } from './authorize-world.ts'

const { get, comparable, expectPage } = await startAuthorize()

test('AUT-05 O-01 an unknown client shows a page and never redirects, whatever else is wrong', async () => {
  const page = await get({}, 'nobody')
  expect([page.status, page.heading]).toEqual([400, 'This application isn’t known'])
  expect(page.location).toBeUndefined()
  expect(page.headers.getSetCookie()).toEqual([])
  expect(page.html).toContain(page.headers.get('x-request-id') ?? 'no id')
  expect(comparable(await get({ redirect_uri: 'https://evil.example/' }, 'nobody'))).toEqual(comparable(page))
})

describe('AUT-05 O-02 a redirect URI with any difference shows a page', () => {
  test.each([
    ['https://app.example/Callback'],
    ['https://APP.example/callback'],
    ['https://app.example/callback/'],
    ['https://app.example/callback?a=1'],
    ['https://app.example/callback?'],
    ['https://app.example:443/callback'],
    ['https://app.example:8443/callback'],
    ['http://app.example/callback'],
    ['https://app.example/x/../callback'],
    ['https://app.example/%2e%2e/callback'],
    ['https://app.example%2Fcallback'],
    ['https://app.example/callback%2F'],
    ['https://app.example/callback#'],
    ['https://app.example/callback#frag'],
    ['https://user@app.example/callback'],
    ['https://app.example@evil.example/callback'],
    ['https://app.example@x@evil.example/callback'],
    ['https://evil.example\\@app.example/callback'],
    ['https:\\\\app.example/callback'],
    ['https://app.example/callback\t'],
    ['https://app.example/\ncallback'],
    ['https://evil.com#https://app.example/callback'],
    ['https://xn--pp-via.example/callback'],
    ['https://аpp.example/callback'],
    ['//app.example/callback'],
    ['https://app.example//callback'],
    ['/callback'],
    ['javascript:alert(1)'],
    [''],
    ['x'.repeat(4000)],
  ])('%j', async redirect_uri => {
    await expectPage(await get({ redirect_uri }))
  })

  test('missing', async () => {
    expect((await get({ redirect_uri: undefined })).heading).toBe('The return address isn’t registered')
    await expectPage(await get({ redirect_uri: undefined }))
  })
})

describe('O-03 a loopback IP without a port takes any port', () => {
  test.each([
    ['http://127.0.0.1/cb'],
    ['http://127.0.0.1:51004/cb'],
    ['http://[::1]:51004/cb'],
    ['http://localhost/cb'],
    ['http://127.0.0.1:9000/x'],
  ])('%s', async redirect_uri => {
    const page = await get({ redirect_uri, prompt: 'none' }, 'native')
    expect(page.location).toStartWith(`${redirect_uri}?error=login_required`)
  })

  test.each([
    ['http://localhost:51004/cb'],
    ['http://127.0.0.1:9001/x'],
    ['http://127.0.0.2:51004/cb'],
    ['http://127.0.0.1:51004/other'],
    ['http://127.0.0.1:0/cb'],
    ['http://127.0.0.1:65536/cb'],
    ['http://127.0.0.1:80@evil.example/cb'],
    ['https://127.0.0.1:51004/cb'],
  ])('but not %s', async redirect_uri => {
    await expectPage(await get({ redirect_uri }, 'native'))
  })
})

test('O-05 a bad redirect URI shows a page, whatever else is wrong', async () => {
  const redirect_uri = 'https://evil.example/'
  await expectPage(await get({ redirect_uri, response_type: 'token' }))
  await expectPage(await get({ redirect_uri, scope: 'nonsense', code_challenge: undefined }))
  await expectPage(await get({ redirect_uri }, 'machine'))
})
