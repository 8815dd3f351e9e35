import { expect, test } from 'bun:test'
import { cached } from '#src/storage/cache.ts'
import { freshStore } from '#test/support/store.ts'

test('reads wait for the load of the same result, except for a load that began before a change', async () => {
  const store = await freshStore()
  const gates: (() => void)[] = []
  const load = cached('clients', async () => {
    const loads = gates.length + 1
    await new Promise<void>(resolve => gates.push(resolve))
    return loads
  })
  const old = [load(store, 'a'), load(store, 'a')]
  await store.write(async tx => tx.changed('clients'))
  const current = [load(store, 'a'), load(store, 'a')]
  // The load that began first ends last, and its result must not replace the later one.
  for (const open of gates.toReversed()) open()
  expect(await Promise.all([...old, ...current])).toEqual([1, 1, 2, 2])
  expect(await load(store, 'a')).toBe(2)
})
