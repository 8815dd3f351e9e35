import { expect, test } from 'bun:test'
import { listKeys } from '#src/tokens/key-store.ts'
import { openKeys } from '#src/tokens/keys.ts'
import { until } from '#test/support/until.ts'
import { keyBase } from './key-base.ts'

test('TOK-20 a first start makes the RS256 key without a call, unless it is to be made late', async () => {
  const [late, base] = [await keyBase(), await keyBase()]
  await openKeys(late, true)
  await openKeys(base)
  const algs = async ({ store }: typeof base) => (await store.read(listKeys)).map(({ alg }) => alg).sort()
  await until(async () => (await algs(base)).length > 1)
  expect(await algs(base)).toEqual(['ES256', 'RS256'])
  expect(await algs(late)).toEqual(['ES256'])
})
