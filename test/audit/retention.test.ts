import { afterAll, describe, expect, spyOn, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { anonymousActor, record } from '#src/audit/record.ts'
import { sweepEvents } from '#src/audit/retention.ts'
import { DAY } from '#src/lib/duration.ts'
import type { Store } from '#src/storage/store.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { mountTmpfs } from '#test/support/tmpfs.ts'

describe('retention', () => {
  const fillWith = async (app: TestApp, count: number, metadata?: Json) => {
    const { context } = app
    await context.store.write(async tx => {
      for (let i = 0; i < count; i++)
        await record(context, tx, {
          type: 'user.logout',
          actor: anonymousActor,
          target_id: 'x',
          target_type: 'user',
          organization_id: 'org_default',
          client_info: { ip_address: '', user_agent: '' },
          ...(metadata && { metadata }),
        })
    })
  }
  const count = (app: TestApp) => app.context.store.read(q => q.$count(q.tables.events))

  test('is off unless configured', async () => {
    const app = await startApp()
    await fillWith(app, 10)
    const before = await count(app)
    app.clock.advance(10_000 * DAY)
    expect(await sweepEvents(app.context)).toBe(0)
    expect(await count(app)).toBe(before)
  })

  const kept = (data_dir: string): Json[] =>
    readdirSync(join(data_dir, 'events'))
      .sort()
      .flatMap(name =>
        readFileSync(join(data_dir, 'events', name), 'utf8')
          .trimEnd()
          .split('\n'),
      )
      .map(line => JSON.parse(line))
  const folder = (): string => {
    const path = mkdtempSync(join(tmpdir(), 'gatehouse-events-'))
    folders.push(path)
    return path
  }
  const folders: string[] = []
  afterAll(() => {
    for (const path of folders) rmSync(path, { recursive: true })
  })

  test('moves older events into files in batches, and keeps newer ones', async () => {
    const data_dir = folder()
    const app = await startApp({ event_retention: 30 * DAY, data_dir })
    await fillWith(app, 600)
    const { body: shown } = await app.admin('GET', '/events?order=asc&limit=100')
    const old = await count(app)
    app.clock.advance(DAY)
    await fillWith(app, 5)
    app.clock.advance(29 * DAY)
    expect(await sweepEvents(app.context)).toBe(0)
    app.clock.advance(1)
    expect(await sweepEvents(app.context)).toBe(old)
    expect(await count(app)).toBe(5)
    expect((await app.admin('GET', '/events?type=user.logout')).body.pagination.total).toBe(5)
    expect(kept(data_dir)).toHaveLength(old)
    expect(kept(data_dir).slice(0, 100)).toEqual(shown.data)
    expect(readdirSync(join(data_dir, 'events'))).toEqual(['2026-01.jsonl'])
    expect((statSync(join(data_dir, 'events', '2026-01.jsonl')).mode & 0o777).toString(8)).toBe('600')
  })

  test('removes no event before its file is written, and continues after a failure', async () => {
    const data_dir = folder()
    const app = await startApp({ event_retention: 30 * DAY, data_dir })
    await fillWith(app, 10)
    const before = await count(app)
    app.clock.advance(31 * DAY)
    writeFileSync(join(data_dir, 'events'), 'in the way')
    await expect(sweepEvents(app.context)).rejects.toThrow()
    expect(await count(app)).toBe(before)
    rmSync(join(data_dir, 'events'))
    expect(await sweepEvents(app.context)).toBe(before)
    expect(kept(data_dir)).toHaveLength(before)
  })

  test.each([
    ['short', 1],
    ['long', 200_000],
  ])('a half-written %s line of a killed process is replaced by the whole line', async (_, length) => {
    const data_dir = folder()
    const app = await startApp({ event_retention: 30 * DAY, data_dir })
    await fillWith(app, 10)
    const before = await count(app)
    app.clock.advance(31 * DAY)
    mkdirSync(join(data_dir, 'events'))
    const partial = `{"id":"evt_1","metadata":{"text":"${'x'.repeat(length)}`
    writeFileSync(join(data_dir, 'events', '2026-01.jsonl'), `{"id":"evt_0"}\n${partial}`)
    expect(await sweepEvents(app.context)).toBe(before)
    expect(kept(data_dir)).toHaveLength(before + 1)
  })

  test('events whose removal fails are in their file once', async () => {
    const data_dir = folder()
    const app = await startApp({ event_retention: 30 * DAY, data_dir })
    await fillWith(app, 600)
    const before = await count(app)
    app.clock.advance(31 * DAY)
    let isBroken = true
    const write: Store['write'] = body =>
      isBroken ? Promise.reject(new Error('refused')) : app.context.store.write(body)
    const context = { ...app.context, store: { ...app.context.store, write } }
    for (let i = 0; i < 3; i++) await expect(sweepEvents(context)).rejects.toThrow('refused')
    expect(await count(app)).toBe(before)
    isBroken = false
    expect(await sweepEvents(context)).toBe(before)
    const ids = kept(data_dir).map(({ id }) => id)
    expect([ids.length, new Set(ids).size]).toEqual([before, before])
  })

  test('long events that are in their file already are read in one piece', async () => {
    const data_dir = folder()
    const app = await startApp({ event_retention: 30 * DAY, data_dir })
    await fillWith(app, 100, { text: 'é'.repeat(15_000) })
    const before = await count(app)
    app.clock.advance(31 * DAY)
    const write = () => Promise.reject(new Error('refused'))
    const context = { ...app.context, store: { ...app.context.store, write } }
    await expect(sweepEvents(context)).rejects.toThrow('refused')
    const { size } = statSync(join(data_dir, 'events', '2026-01.jsonl'))
    const concat = spyOn(Buffer, 'concat')
    expect(await sweepEvents(app.context)).toBe(before)
    const joined = concat.mock.calls.flatMap(([parts]) => parts.map(({ length }) => length))
    concat.mockRestore()
    // The driver of PostgreSQL joins a few bytes, too.
    expect(joined.reduce((sum, length) => sum + length, 0)).toBeLessThan(2 * size)
    expect(kept(data_dir)).toHaveLength(before)
  })

  test('a disk that fills up loses no event and leaves no partial line', async () => {
    const data_dir = folder()
    const app = await startApp({ event_retention: 30 * DAY, data_dir })
    await fillWith(app, 600)
    const ids = new Set(
      (await app.context.store.read(q => q.select().from(q.tables.events))).map(({ id }) => id),
    )
    app.clock.advance(31 * DAY)
    const path = join(data_dir, 'events')
    mkdirSync(path)
    const unmount = await mountTmpfs(path, '64k')
    if (!unmount) return console.log('left out: may not mount a small disk')
    try {
      await expect(sweepEvents(app.context)).rejects.toMatchObject({ code: 'ENOSPC' })
      const left = await app.context.store.read(q => q.select().from(q.tables.events))
      const there = () => [...left, ...kept(data_dir)].map(({ id }) => id)
      expect(left.length).toBeGreaterThan(0)
      expect(new Set(there())).toEqual(ids)
      await Bun.$`mount -o remount,size=1m ${path}`.quiet()
      expect(await sweepEvents(app.context)).toBe(left.length)
      expect(
        kept(data_dir)
          .map(({ id }) => id)
          .sort(),
      ).toEqual([...ids].sort())
    } finally {
      await unmount()
    }
  })
})
