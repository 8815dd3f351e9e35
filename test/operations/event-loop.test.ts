import { expect, test } from 'bun:test'
import { type Metrics, openMetrics } from '#src/lib/metrics.ts'
import { largestOfMinute, watchEventLoop } from '#src/operations/event-loop.ts'
import { startHousekeeping } from '#src/operations/housekeeping.ts'
import { startApp } from '#test/support/app.ts'

const MINUTE = 60_000

test('the largest value is reported for a minute, and no longer after 70 s', () => {
  const holds = largestOfMinute()
  expect(holds.read(0)).toBe(0)
  holds.note(9_999, 700)
  holds.note(10_000, 30)
  holds.note(10_001, 20)
  expect(holds.read(9_999 + MINUTE)).toBe(700)
  expect(holds.read(70_000)).toBe(30)
  expect(holds.read(80_000)).toBe(0)
  holds.note(80_000, 5)
  expect(holds.read(80_000)).toBe(5)
})

const hold = (ms: number): void => {
  for (const until = performance.now() + ms; performance.now() < until; );
}

test('/metrics shows a blocked event loop until the server stops', async () => {
  const app = await startApp()
  const shown = async () => {
    const answer = await app.call('/metrics', { headers: { host: 'localhost:8080' } })
    return Number(/^gatehouse_event_loop_hold_seconds (.*)$/m.exec(await answer.text())?.[1])
  }
  expect(await shown()).toBe(0)
  const stop = startHousekeeping(app.context)
  hold(300)
  expect(await shown()).toBeGreaterThan(0.2)
  stop()
  expect(await shown()).toBe(0)
})

test('stopping one watch leaves the others', () => {
  const [one, other] = [openMetrics(), openMetrics()]
  const shown = (metrics: Metrics) =>
    Number(/^gatehouse_event_loop_hold_seconds (.*)$/m.exec(metrics.render())?.[1])
  const [first, second] = [watchEventLoop(one), watchEventLoop(other)]
  first()
  hold(200)
  expect([shown(one), shown(other) > 0.1]).toEqual([0, true])
  second()
  expect(shown(other)).toBe(0)
})
