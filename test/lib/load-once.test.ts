import { expect, test } from 'bun:test'
import { loadOnce } from '#src/lib/load-once.ts'

test('code is loaded once; a load that failed is tried again with the next call', async () => {
  let loads = 0
  const load = loadOnce(async () => {
    loads++
    if (loads === 1) throw new Error('EMFILE: too many open files')
    return loads
  })
  const refused = await Promise.allSettled([load(), load()])
  expect(refused.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(await Promise.all([load(), load(), load()])).toEqual([2, 2, 2])
  expect(loads).toBe(2)
})
