import { afterAll, expect } from 'bun:test'
import { start } from '#src/testing/start.ts'
import { closeChromium, openPage, startClient, testInChromium } from '#test/support/chromium.ts'
import { CHALLENGE } from '#test/support/people.ts'

const server = await start({ auto_login: true })
const client = startClient()
afterAll(async () => {
  await closeChromium()
  client.stop()
  await server.stop()
})

testInChromium('H-49 the page of the fake provider is styled, and posts its answer by itself', async () => {
  await using opened = await openDisposable()
  const { page } = opened
  const refused: string[] = []
  page.on('console', ({ text }) => void (/Content Security Policy/.test(text()) && refused.push(text())))
  const query = new URLSearchParams({
    client_id: 'any',
    redirect_uri: `${client.origin}/callback`,
    response_mode: 'form_post',
    state: 'xyz',
  })
  await page.goto(`${client.origin}/`)
  await page.evaluate(url => location.assign(url), `${server.url}/dev/openid/authorize?${query}`)
  await page.getByRole('button', { name: 'Sign in' }).waitFor()
  // The button is there before the style is loaded.
  await page.waitForLoadState()
  expect(await page.evaluate(() => getComputedStyle(document.body).maxWidth)).toBe('384px')
  const posted = page.waitForRequest(request => request.url() === `${client.origin}/callback`)
  await page.getByRole('button', { name: 'Sign in' }).click()
  const form = new URLSearchParams((await posted).postData() ?? '')
  expect([form.get('state'), form.get('code')]).toEqual(['xyz', expect.stringMatching(/^[\w-]{36}$/)])
  expect(refused).toEqual([])
})

testInChromium('H-49 a login that begins at another site still ends there with a user picked', async () => {
  await using opened = await openDisposable()
  const { page } = opened
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: 'dev-web',
    redirect_uri: `${client.origin}/callback`,
    scope: 'openid',
    login_hint: 'alice',
    code_challenge: CHALLENGE,
    code_challenge_method: 'S256',
  })
  await page.goto(client.origin)
  await page.evaluate(url => location.assign(url), `${server.url}/oauth/authorize?${query}`)
  await page.waitForURL(url => url.origin === client.origin && url.searchParams.has('code'))
})

const openDisposable = async () => {
  const { page, close } = await openPage()
  return { page, [Symbol.asyncDispose]: close }
}
