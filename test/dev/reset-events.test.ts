import { expect, test } from 'bun:test'
import { restoreAll, restoreOrganization, takeSnapshot } from '#src/dev/store.ts'
import { newId } from '#src/lib/ids.ts'
import { startApp } from '#test/support/app.ts'
import { addOrganization } from '#test/support/people.ts'

test('dev 12: after a reset the filtered total of more than 10,000 events is counted again', async () => {
  const app = await startApp()
  const { store, clock } = app.context
  const { id } = await addOrganization(app, 'acme')
  const snapshot = await store.read(takeSnapshot)
  const [event] = (snapshot.get('events') ?? []).filter(row => row.organization_id === id)
  const path = `/events?organization_id=${id}&type=${event?.type}`
  const total = async (): Promise<number> => (await app.admin('GET', path)).body.pagination.total
  expect(await total()).toBe(1)
  const addMany = async () => {
    const { seq: _, ...row } = event ?? {}
    for (let part = 0; part < 11; part++) {
      const rows = Array.from({ length: 1_000 }, () => ({ ...row, id: newId('evt', clock.now()) }))
      await store.write(tx => tx.insert(tx.tables.events).values(rows as never[]))
    }
    expect(await total()).toBe(10_001)
  }
  await addMany()
  await store.write(tx => restoreAll(tx, snapshot))
  expect(await total()).toBe(1)
  await addMany()
  await store.write(tx => restoreOrganization(tx, snapshot, id, clock.now()))
  expect(await total()).toBe(1)
})
