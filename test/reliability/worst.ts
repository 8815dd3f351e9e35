import { expect, test } from 'bun:test'
import { figure } from './faults.ts'
import { LONGEST_HOLD, timed } from './hold.ts'

export type Answer = Pick<Response, 'status'>

/**
 * Sends the input. Checks that the input is refused cleanly or has no effect. Checks that the input holds the
 * event loop for less than a second.
 */
export const worst = (name: string, statuses: number[], send: () => Promise<Answer>): void =>
  test(`R-22 worst input: ${name}`, async () => {
    const { result, spent } = await timed(send)
    figure('R-22', `${name}: ${spent.toFixed(0)} ms`)
    expect(statuses).toContain(result.status)
    expect(spent).toBeLessThan(LONGEST_HOLD)
  }, 60_000)

/** Repeats the text as often as fits into `bytes` bytes of UTF-8. */
export const fill = (text: string, bytes: number): string =>
  text.repeat(Math.floor(bytes / Buffer.byteLength(text)))
