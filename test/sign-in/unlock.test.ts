import { expect, test } from 'bun:test'
import { forgetFailures } from '#src/sign-in/unlock.ts'
import { startApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { addUser, signIn } from '#test/support/people.ts'

const app = await startApp()

test('an unlocked user can sign in at once, from the same network too; others still wait', async () => {
  const ada = await addUser(app, 'ada')
  await addUser(app, 'bob')
  const attempt = async (name: string, password?: string, ip = '192.0.2.10') => {
    const browser = openBrowser(app, { ip })
    return (await signIn(browser, await browser.get('/account'), name, password)).status
  }
  expect(await attempt('ada')).toBe(200)
  for (let i = 0; i < 5; i++)
    for (const [name, ip] of [
      ['ada', '192.0.2.10'],
      ['ada', '198.51.100.1'],
      ['ada@example.com', '198.51.100.1'],
      ['bob', '198.51.100.2'],
    ] as const)
      await attempt(name, 'Wrong-horse-7', ip)
  expect(await attempt('ada')).toBe(429)
  expect(await attempt('ada@example.com', undefined, '198.51.100.1')).toBe(429)
  await app.context.store.write(tx => forgetFailures(tx, ada))
  expect(await attempt('ada')).toBe(200)
  expect(await attempt('ada', undefined, '198.51.100.1')).toBe(200)
  expect(await attempt('ada@example.com', undefined, '198.51.100.1')).toBe(200)
  expect(await attempt('bob', undefined, '198.51.100.2')).toBe(429)
})
