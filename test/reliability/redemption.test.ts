import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Json } from '#test/support/app.ts'
import { answerOf, openBrowser } from '#test/support/browser.ts'
import { type Running, serveExecutable } from '#test/support/executable.ts'
import { addClient, addUser, authorizeUrl, logInTo } from '#test/support/people.ts'
import { remote } from '#test/support/remote.ts'
import { redeem, refresh } from '#test/support/tokens.ts'
import { figure, LONG } from './faults.ts'

const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-'))
afterAll(() => rmSync(data_dir, { recursive: true, force: true }))

const ROUNDS = Number(process.env.KILLS ?? (LONG ? 1_000 : 6))
const IN_FLIGHT = 16

/** Returns the answer. Returns undefined if the server is killed before it answers. */
const attempt = async (ask: () => Promise<{ status: number; body: Json }>) => {
  try {
    return await ask()
  } catch {
    return undefined
  }
}

const start = (): Promise<Running & AsyncDisposable> =>
  serveExecutable({ GATEHOUSE_LOG_LEVEL: 'silent' }, data_dir)

test(
  'R-02 killed during redemptions: no code or refresh token works twice, and answered redemptions stay',
  async () => {
    let server = await start()
    await addUser(remote(server), 'alice')
    const client = await addClient(remote(server), 'shop', { client_id: 'shop' })
    let answered = 0
    for (let round = 0; round < ROUNDS; round++) {
      const before = remote(server)
      const browser = openBrowser(before)
      await logInTo(browser, 'shop', 'alice')
      const authorize = async () => answerOf(await browser.get(authorizeUrl('shop'))).code ?? ''
      const codes = await Promise.all(Array.from({ length: IN_FLIGHT }, authorize))
      const families = await Promise.all(
        Array.from({ length: IN_FLIGHT }, async () => (await redeem(before, client, await authorize())).body),
      )

      // Redeems codes and refresh tokens concurrently. Each round kills the server after a different number
      // of answers.
      let left = 1 + ((round * 7) % IN_FLIGHT)
      const orDie = async (ask: () => Promise<{ status: number; body: Json }>) => {
        const answer = await attempt(ask)
        if (--left === 0) server.signal('SIGKILL')
        return answer
      }
      const [redeemed, refreshed] = await Promise.all([
        Promise.all(codes.map(code => orDie(() => redeem(before, client, code)))),
        Promise.all(families.map(({ refresh_token }) => orDie(() => refresh(before, client, refresh_token)))),
      ])
      await server.exited
      server = await start()
      const after = remote(server)

      for (const [i, answer] of redeemed.entries()) {
        if (!answer) {
          // If the redemption before the kill was committed, both of these redemptions fail. If it was not
          // committed, one of these redemptions succeeds.
          const statuses = [
            await redeem(after, client, codes[i] ?? ''),
            await redeem(after, client, codes[i] ?? ''),
          ]
          expect(statuses.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(1)
          continue
        }
        answered++
        expect((await refresh(after, client, answer.body.refresh_token)).status).toBe(200)
        expect((await redeem(after, client, codes[i] ?? '')).status).toBe(400)
      }
      for (const [i, answer] of refreshed.entries()) {
        const old = families[i]?.refresh_token
        if (answer) {
          answered++
          expect((await refresh(after, client, answer.body.refresh_token)).status).toBe(200)
          expect((await refresh(after, client, old)).status).toBe(400)
          continue
        }
        const statuses = [await refresh(after, client, old), await refresh(after, client, old)]
        expect(statuses.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(1)
      }
    }
    expect(answered).toBeGreaterThan(ROUNDS)
    figure(
      'R-02',
      `${ROUNDS} kills among ${ROUNDS * 2 * IN_FLIGHT} redemptions, ${answered} of them answered: each held, none worked twice`,
    )
    server.signal('SIGTERM')
    expect(await server.exited).toBe(0)
  },
  20_000 * ROUNDS,
)
