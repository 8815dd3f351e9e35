import { describe, expect, test } from 'bun:test'
import { eq, sql } from 'drizzle-orm'
import { isUniqueViolation } from '#src/storage/errors.ts'
import { prepared, type Queries, type Topic, type Transaction } from '#src/storage/store.ts'
import { freshStore, openBeside } from '#test/support/store.ts'

// Tests the rules of every engine. test/run.ts runs this file on each engine.

const put = async (tx: Transaction, name: string, value: unknown = name) => {
  await tx.insert(tx.tables.settings).values({ name, value, updated_at: 1 })
}

const insert = prepared((q, { settings }) =>
  q.insert(settings).values({ name: sql.placeholder('name'), value: 1, updated_at: 1 }),
)

const names = async (q: Queries) => (await q.select().from(q.tables.settings)).map(row => row.name).sort()

const unavailable = { code: 'temporarily_unavailable', status: 503, headers: { 'retry-after': '1' } }

test('an answered write is committed: a new connection reads it', async () => {
  const store = await freshStore()
  await store.write(tx => put(tx, 'a'))
  expect(await store.read(names)).toEqual(['a'])
  const beside = await openBeside(store.path)
  expect(await beside.read(names)).toEqual(['a'])
  await beside.close()
})

test('a read does not see an uncommitted write', async () => {
  const store = await freshStore()
  const seen = await store.write(async tx => {
    await put(tx, 'a')
    return { inside: await names(tx), outside: await store.read(names) }
  })
  expect(seen).toEqual({ inside: ['a'], outside: [] })
})

test('RUN-27 a body that throws rolls back only itself', async () => {
  const store = await freshStore()
  const [before, refused, after] = await Promise.allSettled([
    store.write(tx => put(tx, 'before')),
    store.write(async tx => {
      await put(tx, 'half')
      throw new RangeError('no')
    }),
    store.write(tx => put(tx, 'after')),
  ])
  expect([before.status, refused.status, after.status]).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(refused).toMatchObject({ reason: new RangeError('no') })
  expect(await store.read(names)).toEqual(['after', 'before'])
})

test('an uncaught unique violation is reported as such', async () => {
  const store = await freshStore()
  const write = store.write(async tx => {
    await put(tx, 'a')
    await put(tx, 'a')
  })
  expect(isUniqueViolation(await write.catch(error => error))).toBe(true)
  expect(await store.read(names)).toEqual([])
})

test('a nested body rolls back only itself, and the rest continues', async () => {
  const store = await freshStore()
  await store.write(async tx => {
    await put(tx, 'a')
    const refused = tx.nested(async () => {
      await put(tx, 'half')
      await tx.nested(() => put(tx, 'inner'))
      await put(tx, 'a')
    })
    expect(isUniqueViolation(await refused.catch(error => error))).toBe(true)
    expect(await tx.nested(() => put(tx, 'b').then(() => 'done'))).toBe('done')
  })
  expect(await store.read(names)).toEqual(['a', 'b'])
})

test('a statement that is not awaited is part of the write, which fails with it', async () => {
  const store = await freshStore()
  await store.write(async tx => {
    await tx.later(insert(tx, { name: 'a' }))
    expect(await names(tx)).toEqual(['a'])
    await tx.later(insert(tx, { name: 'b' }))
  })
  const refused = store.write(async tx => {
    await put(tx, 'half')
    await tx.later(insert(tx, { name: 'a' }))
  })
  expect(isUniqueViolation(await refused.catch(error => error))).toBe(true)
  await store.write(async tx => {
    const refused = tx.nested(async () => tx.later(insert(tx, { name: 'a' })))
    expect(isUniqueViolation(await refused.catch(error => error))).toBe(true)
    await tx.later(insert(tx, { name: 'c' }))
  })
  expect(await store.read(names)).toEqual(['a', 'b', 'c'])
})

test('effects run once, after the commit, and never when the body threw', async () => {
  const store = await freshStore()
  const seen: unknown[] = []
  await store.write(async tx => {
    await put(tx, 'a')
    tx.after(() => seen.push('a'))
    expect(seen).toEqual([])
  })
  const refused = store.write(async tx => {
    tx.after(() => seen.push('never'))
    throw new RangeError('no')
  })
  await expect(refused).rejects.toThrow('no')
  await store.rehearse(async tx => tx.after(() => seen.push('never')), 'all')
  await store.write(async tx => {
    const refused = tx.nested(async () => {
      tx.after(() => seen.push('never'))
      throw new RangeError('no')
    })
    await expect(refused).rejects.toThrow('no')
    tx.after(() => seen.push('b'))
  })
  expect(seen).toEqual(['a', 'b'])
})

test('a rehearsal keeps nothing, and other writes run meanwhile', async () => {
  const store = await freshStore()
  const seen = await store.rehearse(async tx => {
    await put(tx, 'rehearsed')
    await store.write(other => put(other, 'written'))
    return names(tx)
  }, 'all')
  expect(seen).toContain('rehearsed')
  expect(await store.read(names)).toEqual(['written'])
})

test('a transaction cannot be used after its body', async () => {
  const store = await freshStore()
  const tx = await store.write(async tx => tx)
  await expect(put(tx, 'late')).rejects.toMatchObject(unavailable)
  expect(await store.read(names)).toEqual([])
})

test('topics are published after the commit, before its writer continues, and not when the body threw', async () => {
  const store = await freshStore()
  const told = new Set<Topic>()
  store.onChange(topics => {
    for (const topic of topics ?? []) told.add(topic)
  })
  await store.write(async tx => {
    tx.changed('roles')
    expect(told.size).toBe(0)
  })
  expect([...told]).toEqual(['roles'])
  const refused = store.write(async tx => {
    tx.changed('keys')
    throw new RangeError('no')
  })
  await expect(refused).rejects.toThrow('no')
  expect([...told]).toEqual(['roles'])
})

test('fifty concurrent writes that depend on their reads are serialized', async () => {
  const store = await freshStore()
  const { settings } = await store.read(async q => q.tables)
  await store.write(tx => put(tx, 'n', 0))
  const add = (tx: Transaction) => async () => {
    const [row] = await tx.select().from(settings).where(eq(settings.name, 'n'))
    await tx
      .update(settings)
      .set({ value: Number(row?.value) + 1 })
      .where(eq(settings.name, 'n'))
  }
  await Promise.all(Array.from({ length: 50 }, () => store.write(tx => add(tx)())))
  const [row] = await store.read(q => q.select().from(settings))
  expect(row?.value).toBe(50)
})

test('only one of fifty writes that check first and then insert succeeds', async () => {
  const store = await freshStore()
  const first = async (tx: Transaction) => {
    if ((await names(tx)).length > 0) return false
    await put(tx, crypto.randomUUID())
    return true
  }
  const done = await Promise.all(Array.from({ length: 50 }, () => store.write(first)))
  expect(done.filter(Boolean)).toHaveLength(1)
  expect(await store.read(names)).toHaveLength(1)
})

test('a closed store answers what has begun and refuses more', async () => {
  const store = await freshStore()
  const beside = await openBeside(store.path)
  const last = beside.write(tx => put(tx, 'a'))
  await beside.close()
  await last
  await expect(beside.write(tx => put(tx, 'b'))).rejects.toMatchObject(unavailable)
  expect(await store.read(names)).toEqual(['a'])
})

describe('text', () => {
  test.each([
    '',
    "'; DROP TABLE users; --",
    '\\',
    '%_',
    'é\u0301 😀 \u{10ffff}',
    '\x01\x7f',
    ' a ',
    'x'.repeat(100_000),
  ])('is returned unchanged: %j', async value => {
    const store = await freshStore()
    await store.write(tx => put(tx, value.slice(0, 300), { value, nested: [value, null, 1.5, true] }))
    const [row] = await store.read(q => q.select().from(q.tables.settings))
    expect(row).toMatchObject({
      name: value.slice(0, 300),
      value: { value, nested: [value, null, 1.5, true] },
    })
  })

  test('sorts by code points, whatever the locale of the machine', async () => {
    const store = await freshStore()
    const all = ['a', 'B', 'Z', 'b', 'ä', 'é', 'z', '~', '1', '\u{1f600}', '\ufb01']
    await store.write(async tx => {
      for (const name of all) await put(tx, name)
    })
    const rows = await store.read(q => q.select().from(q.tables.settings).orderBy(q.tables.settings.name))
    const points = (text: string) => Buffer.from(text)
    expect(rows.map(({ name }) => name)).toEqual(all.toSorted((a, b) => points(a).compare(points(b))))
  })
})

test('a lock of a name is held by one caller at a time', async () => {
  const store = await freshStore()
  expect(await store.exclusively('sweep', async () => 'done')).toBe('done')
  const failed = store.exclusively('sweep', async () => {
    throw new RangeError('no')
  })
  await expect(failed).rejects.toThrow('no')
  const inside = await store.exclusively('sweep', () => store.exclusively('other', async () => 'both'))
  expect(inside).toBe('both')
  expect(await store.exclusively('sweep', async () => 'again', 'wait')).toBe('again')
})

test('numbers up to 2^53, counts and sums are returned as numbers', async () => {
  const store = await freshStore()
  const { settings } = await store.read(async q => q.tables)
  const updated_at = Number.MAX_SAFE_INTEGER
  await store.write(tx => tx.insert(settings).values({ name: 'n', value: 1, updated_at }))
  expect(await store.read(q => q.select().from(settings))).toEqual([{ name: 'n', value: 1, updated_at }])
  expect(await store.read(q => q.$count(settings))).toBe(1)
})
