import { afterAll, expect } from 'bun:test'
import { realClock, startApp } from '#test/support/app.ts'
import { closeChromium, openPage, startClient, testInChromium } from '#test/support/chromium.ts'
import { needs } from '#test/support/debian.ts'
import { freePort } from '#test/support/free-port.ts'
import { addClient, authorizeUrl } from '#test/support/people.ts'
import { introduce, SIMPLESAML, startSimpleSaml } from './counterparts.ts'

if (needs('simplesamlphp', SIMPLESAML))
  testInChromium(
    'S-36 O-32 a person clicks the button, signs in at SimpleSAMLphp, consents, and is at the application',
    async () => {
      const site = startClient()
      const port = freePort()
      const url = `http://localhost:${port}`
      const app = await startApp({ url, outbound_allow: ['*=127.0.0.1:*'] }, { clock: realClock })
      const server = Bun.serve({
        port,
        hostname: 'localhost',
        fetch: (request, self) => app.fetch(request, self),
      })
      const redirect_uri = `${site.origin}/callback`
      await addClient(app, 'web', { redirect_uris: [redirect_uri], consent_required: true })
      const parties = await introduce(app, 'corp', [
        { alias: 'idp', sign_response: true, sign_assertion: true, encrypt: false },
      ])
      await using counterpart = await startSimpleSaml(parties)
      const metadata_xml = await (await fetch(counterpart.metadata_url)).text()
      await app.admin('PUT', '/identity-providers/corp-idp', { metadata_xml, name: 'Corporate login' })
      afterAll(closeChromium)

      const { page, close } = await openPage()
      await page.goto(url + authorizeUrl('web', { redirect_uri }))
      await page.getByRole('link', { name: 'Corporate login' }).click()
      await page.locator('input[name=username]').fill('ada')
      await page.locator('input[name=password]').fill('adapass')
      await page.locator('input[name=password]').press('Enter')
      await page.getByRole('button', { name: 'Allow' }).click()
      await page.waitForURL(address => address.href.startsWith(redirect_uri))
      const { searchParams } = new URL(page.url())
      expect(searchParams.get('state')).toBe('xyz')
      expect(searchParams.get('iss')).toBe(url)
      expect(searchParams.get('code')).toMatch(/^[\w-]{200,512}$/)
      // The script of the pages writes a cookie with the time zone, which is no secret.
      const all = await page.context().cookies(url)
      const cookies = all.filter(({ name }) => name !== 'time_zone')
      expect(cookies.map(({ sameSite, httpOnly }) => [sameSite, httpOnly])).toEqual(
        cookies.map(() => ['Lax', true]),
      )
      await close()
      await site.stop()
      await server.stop(true)
    },
    60_000,
  )
