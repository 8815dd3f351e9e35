import { expect, spyOn, test } from 'bun:test'
import type { Context } from '#src/context.ts'
import { DAY, MINUTE } from '#src/lib/duration.ts'
import { openLogger } from '#src/lib/log.ts'
import { startHousekeeping } from '#src/operations/housekeeping.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { isPostgres, openBeside } from '#test/support/store.ts'

/** Starts housekeeping. Returns the functions that timers call each minute, and the one that stops it. */
const startRounds = (context: Context) => {
  const timers = spyOn(globalThis, 'setInterval')
  const stop = startHousekeeping(context)
  const [jobs, backup] = timers.mock.calls.flatMap(([round, ms]) =>
    ms === MINUTE ? [round] : [],
  ) as (() => Promise<void>)[]
  timers.mockRestore()
  if (!jobs || !backup) throw new Error('no timer of a minute')
  return { jobs, backup, stop }
}

/** Returns a server whose keys are due for a rotation, the lines of its log, and the states of its keys. */
const startDue = async () => {
  const lines: Json[] = []
  const log = openLogger('error', line => void lines.push(JSON.parse(line)))
  const app = await startApp({}, { log })
  await app.context.keys.published()
  app.clock.advance(91 * DAY)
  const states = async (): Promise<string[]> =>
    (await app.admin('GET', '/keys')).body.data.map(({ state }: Json) => state)
  return { app, lines, states }
}

test('a job that fails is logged, and the jobs after it run', async () => {
  const { app, lines, states } = await startDue()
  const { jobs, stop } = startRounds(app.context)
  const write = spyOn(app.context.store, 'write').mockRejectedValueOnce(new Error('the disk is full'))
  await jobs()
  write.mockRestore()
  expect(lines).toMatchObject([{ event: 'housekeeping', job: 'sweep', err: { message: 'the disk is full' } }])
  expect(await states()).toContain('next')
  await stop()
})

test('a round that finds the one before it at work does nothing', async () => {
  const { app, states } = await startDue()
  const { jobs, backup, stop } = startRounds(app.context)
  const locked = spyOn(app.context.store, 'exclusively')
  await Promise.all([jobs(), jobs(), backup()])
  expect(locked.mock.calls.map(([name]) => name.split(' ')[0])).toEqual(['housekeeping', 'backup'])
  await jobs()
  expect(locked).toHaveBeenCalledTimes(3)
  locked.mockRestore()
  expect((await states()).filter(state => state === 'next')).toHaveLength(2)
  await stop()
})

test('a round that cannot take its lock is logged, and the next one runs', async () => {
  const { app, lines, states } = await startDue()
  const { jobs, stop } = startRounds(app.context)
  const locked = spyOn(app.context.store, 'exclusively').mockRejectedValueOnce(new Error('no connection'))
  await jobs()
  locked.mockRestore()
  expect(lines).toMatchObject([{ event: 'housekeeping', job: 'all', err: { message: 'no connection' } }])
  expect(await states()).not.toContain('next')
  await jobs()
  expect(await states()).toContain('next')
  await stop()
})

if (isPostgres)
  test('while another copy has the lock, a round does nothing', async () => {
    const { app, lines, states } = await startDue()
    const { jobs, stop } = startRounds(app.context)
    const other = await openBeside(String(Reflect.get(app.context.store, 'path')))
    await other.exclusively('housekeeping', () => jobs())
    expect(await states()).not.toContain('next')
    await jobs()
    expect(await states()).toContain('next')
    expect(lines).toEqual([])
    await other.close()
    await stop()
  })
