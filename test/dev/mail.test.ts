import { expect, test } from 'bun:test'
import type { Server } from 'bun'
import { devClock } from '#src/dev/clock.ts'
import { development } from '#src/dev/development.ts'
import { captureMail } from '#src/mail/captured.ts'
import { startApp } from '#test/support/app.ts'
import { addUser } from '#test/support/people.ts'

test('dev 14: mail is kept instead of sent, and read through the controls', async () => {
  const mail = captureMail()
  const app = await startApp({}, { mail })
  const answer = development(app.context, app.fetch, {
    clock: devClock(),
    mail,
    token: 'control-token',
    client_id: 'web',
    remote: false,
    exposed: false,
    password: '',
  })
  const loopback = {
    requestIP: () => ({ address: '127.0.0.1', port: 40_000, family: 'IPv4' }),
  } as unknown as Server<unknown>
  const control = (method: string) =>
    answer(
      new Request('http://localhost:8080/dev/mail', {
        method,
        headers: { authorization: 'Bearer control-token' },
      }),
      loopback,
    )
  expect(await (await control('GET')).json()).toEqual({ data: [] })

  const alice = await addUser(app, 'alice', { email_verified: true })
  expect((await app.admin('POST', `/users/${alice.id}/send-password-reset`)).status).toBe(204)
  expect(await (await control('GET')).json()).toMatchObject({
    data: [{ to: 'alice@example.com', text: expect.stringContaining('http://localhost:8080/') }],
  })
  expect((await control('DELETE')).status).toBe(204)
  expect(await (await control('GET')).json()).toEqual({ data: [] })
})
