import { expect, test } from 'bun:test'
import { decodeProtectedHeader } from 'jose'
import { DAY, MINUTE } from '#src/lib/duration.ts'
import { listKeys } from '#src/tokens/key-store.ts'
import { openKeys } from '#src/tokens/keys.ts'
import { rotateDueKeys, rotateKeys } from '#src/tokens/rotation.ts'
import { keyBase } from './key-base.ts'

test('R-07 two keys that were published while the clock was ahead sign one after the other, and rotation goes on', async () => {
  const base = await keyBase()
  const keys = await openKeys(base)
  await keys.ready()
  const sign = () => keys.sign({ sub: 'somebody' }, 'ES256', 'JWT')
  const stored = async () => (await base.store.read(listKeys)).filter(({ alg }) => alg === 'ES256')
  const events = () => base.store.read(q => q.select().from(q.tables.events))
  base.advance(400 * DAY)
  await rotateDueKeys(base, 90 * DAY)
  base.advance(DAY)
  await rotateKeys(base)
  base.advance(-401 * DAY)
  const made = (await stored()).map(({ id }) => id)
  const recorded = await events()
  const signed: string[] = []
  for (const key of made) {
    await rotateDueKeys(base, 90 * DAY)
    signed.push(await sign())
    expect(decodeProtectedHeader(signed.at(-1) ?? '').kid).toBe(key)
    // A further run moves no key while the next one is published but does not sign yet.
    base.advance(5 * MINUTE)
    await rotateDueKeys(base, 90 * DAY)
    base.advance(10 * MINUTE)
  }
  for (const token of signed) expect(await keys.open(token)).toBeDefined()
  base.advance(90 * DAY)
  await rotateDueKeys(base, 90 * DAY)
  const now = base.clock.now()
  expect((await stored()).map(({ active_at, retired_at }) => [active_at - now, retired_at])).toEqual([
    [-90 * DAY - 45 * MINUTE, now + 15 * MINUTE],
    [-90 * DAY - 30 * MINUTE, now + 15 * MINUTE],
    [-90 * DAY - 15 * MINUTE, now + 15 * MINUTE],
    [15 * MINUTE, null],
  ])
  expect(await events()).toEqual(recorded)
})
