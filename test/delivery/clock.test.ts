/**
 * Tests messages that were postponed while the clock was fast. After the clock is set back, their delivery
 * does not wait until the postponed time. Tests senders whose clocks differ, too.
 */
import { expect, test } from 'bun:test'
import { NEVER, startDelivery } from '#src/delivery/queue.ts'
import type { Ranges } from '#src/delivery/store.ts'
import { DAY, HOUR, MINUTE, SECOND } from '#src/lib/duration.ts'
import { deliverMails, startMailDelivery } from '#src/links/mail-delivery.ts'
import { enqueueMail } from '#src/mail/outbox.ts'
import { deliverLogouts, startLogoutDelivery } from '#src/sessions/logout-delivery.ts'
import { startWebhookDelivery } from '#src/webhooks/delivery.ts'
import { startApp, type TestApp } from '#test/support/app.ts'
import { create } from '#test/support/callers.ts'
import { addClient, addUser } from '#test/support/people.ts'
import { freshStore } from '#test/support/store.ts'
import { grantTokens } from '#test/support/tokens.ts'
import { until } from '#test/support/until.ts'
import { allSettled, deliverAll } from '#test/webhooks/deliver.ts'

/** Adds a logout and a mail to deliver. Tokens are issued when the clock of the app is `ahead` ms fast. */
const addMessages = async (app: TestApp, ahead = 0) => {
  const shop = await addClient(app, 'shop', { backchannel_logout_uri: 'https://logout/' })
  const { organization_id, id: user_id } = await addUser(app, 'ada')
  app.clock.advance(ahead)
  await grantTokens(app, shop, { id: user_id, organization_id })
  await app.admin('DELETE', `/users/${user_id}/sessions`)
  await app.context.store.write(tx =>
    enqueueMail(app.context, tx, { kind: 'password_changed', organization_id, user_id }, {}),
  )
}

/**
 * Starts an app with three messages to deliver: a mail, a logout and an event. The app's clock is `ahead` ms
 * fast until `setBack` is called.
 */
const startAhead = async (ahead: number) => {
  const outcomes: string[] = []
  let isDown = true
  const note = (kind: string) => outcomes.push(`${kind} ${isDown ? 'failed' : 'delivered'}`)
  const app = await startApp(
    {},
    {
      fetch: async url => {
        note(new URL(url).hostname)
        return new Response(null, { status: isDown ? 503 : 200 })
      },
      mail: {
        send: async () => {
          note('mail')
          if (isDown) throw new Error('no mail server answers')
        },
      },
    },
  )
  await create(app, '/webhooks', { name: 'Shop', url: 'https://webhook/', events: ['session.revoked'] })
  await addMessages(app, ahead)
  // A webhook whose event is not settled would wait as after a failure.
  await allSettled(app.context.store)
  const setBack = () => {
    app.clock.advance(-ahead)
    isDown = false
  }
  const start = () =>
    [startLogoutDelivery, startWebhookDelivery, startMailDelivery].map(each => each(app.context))
  return { app, outcomes, setBack, start }
}

const failed = ['logout failed', 'mail failed', 'webhook failed']
const delivered = ['logout delivered', 'mail delivered', 'webhook delivered']

test('DEL-08 a server that starts after the clock was set back delivers them', async () => {
  const { app, outcomes, setBack, start } = await startAhead(2 * DAY)
  for (const deliver of [deliverLogouts, deliverAll, deliverMails]) await deliver(app.context)
  expect(outcomes.splice(0).sort()).toEqual(failed)
  setBack()
  const stops = start()
  await until(() => outcomes.length >= 3)
  expect(outcomes.sort()).toEqual(delivered)
  await Promise.all(stops.map(stop => stop()))
})

test('DEL-08 a server that runs while the clock is set back delivers them', async () => {
  const { app, outcomes, setBack, start } = await startAhead(HOUR)
  const stops = start()
  // The pause after a first failure is shorter than a minute. A claim lasts at least a minute.
  const arePutOff = () =>
    app.context.store.read(async q => {
      const { mails, logouts, webhooks } = q.tables
      const rows = await Promise.all([mails, logouts, webhooks].map(table => q.select().from(table)))
      const pauses = rows.flat().map(row => row.next_attempt_at - app.clock.now())
      return pauses.length === 3 && pauses.every(pause => pause > 0 && pause < MINUTE)
    })
  await until(arePutOff)
  expect(outcomes.splice(0).sort()).toEqual(failed)
  setBack()
  // This write starts a round of each delivery. A poll starts the same rounds.
  await app.context.store.write(async tx => {
    for (const topic of ['mails', 'logouts', 'webhook_turns'] as const) tx.changed(topic)
  })
  await until(() => outcomes.length >= 3)
  expect(outcomes.sort()).toEqual(delivered)
  await Promise.all(stops.map(stop => stop()))
})

test('DEL-08 a step back of a minute at most, or a faster clock of another copy, ends no pause', async () => {
  const { context, clock } = await startApp()
  const released: Ranges[] = []
  let looks = 0
  const stop = startDelivery(context, {
    topic: 'mails',
    at_once: 1,
    at_once_each: 1,
    lease: MINUTE,
    longest: HOUR,
    due: async () => {
      looks++
      return []
    },
    claim: async () => false,
    release: async (_tx, _now, ranges) => void released.push(ranges),
    attempt: async () => {},
  })
  await until(() => looks > 0)
  const start = clock.now()
  for (const step of [-MINUTE, HOUR / 2, -MINUTE / 2, -MINUTE]) {
    clock.advance(step)
    const before = looks
    await context.store.write(async tx => tx.changed('mails'))
    await until(() => looks > before)
  }
  const last = NEVER - 1
  const now = clock.now()
  expect(released.map(([pauses]) => pauses)).toEqual([
    [start + HOUR + MINUTE + 1, last],
    [now + MINUTE + MINUTE + 1, last],
  ])
  await stop()
})

test('DEL-01 a sender whose clock is a minute faster waits for the end of an attempt', async () => {
  const calls: string[] = []
  const [bothBegun, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const call = async (kind: string) => {
    calls.push(kind)
    if (calls.length === 2) bothBegun.resolve()
    if (calls.length <= 2) await end.promise
  }
  const outgoing = {
    store: await freshStore(),
    fetch: () => call('logout').then(() => new Response(null)),
    mail: { send: () => call('mail') },
  }
  const slow = await startApp({}, outgoing)
  const fast = await startApp({}, outgoing)
  await addMessages(slow)
  const attempts = [deliverLogouts, deliverMails].map(deliver => deliver(slow.context))
  await bothBegun.promise
  // The longest attempt to call an application takes 5 seconds, the longest one to send a mail 3.5 minutes.
  fast.clock.advance(MINUTE + 5 * SECOND)
  expect(await deliverLogouts(fast.context)).toBe(0)
  fast.clock.advance(3.5 * MINUTE - 5 * SECOND)
  expect(await deliverMails(fast.context)).toBe(0)
  end.resolve()
  expect(await Promise.all(attempts)).toEqual([1, 1])
  expect(calls.sort()).toEqual(['logout', 'mail'])
})
