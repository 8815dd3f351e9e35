import { expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { importKey } from '#src/tokens/key-import.ts'
import { listKeys } from '#src/tokens/key-store.ts'
import { pinKey } from '#src/tokens/manual-keys.ts'
import { keyBase } from './key-base.ts'

const pem = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  .privateKey.export({ format: 'pem', type: 'pkcs8' })
  .toString()

const stateOf = ({ store }: Pick<Awaited<ReturnType<typeof keyBase>>, 'store'>) =>
  store.read(async q => ({
    keys: (await listKeys(q)).map(({ id, alg }) => ({ key_id: String(id), alg })),
    events: (await q.select().from(q.tables.events)).map(({ type, metadata }) => ({ type, metadata })),
  }))

const imported = (key_id: string) => ({
  type: 'admin.settings_changed',
  metadata: { action: 'imported', key_id, alg: 'ES256' },
})

test('an import stores the key and its event in one transaction', async () => {
  const base = await keyBase()
  let commits = 0
  const store: typeof base.store = {
    ...base.store,
    // Simulates a process that ends after its first commit.
    write: change => (++commits > 1 ? Promise.reject(new Error('ended')) : base.store.write(change)),
  }
  const key_id = await importKey({ ...base, store }, pem)
  expect(await stateOf(base)).toEqual({ keys: [{ key_id, alg: 'ES256' }], events: [imported(key_id)] })
})

test('two imports of one key at once store it once, and record one event', async () => {
  const base = await keyBase()
  const results = await Promise.allSettled([importKey(base, pem), importKey(base.elsewhere, pem)])
  const made = results.filter(result => result.status === 'fulfilled').map(({ value }) => value)
  const refused = results.filter(result => result.status === 'rejected').map(({ reason }) => reason.message)
  expect(refused).toEqual(['this key is already stored'])
  const [key_id = ''] = made
  expect(await stateOf(base)).toEqual({ keys: [{ key_id, alg: 'ES256' }], events: [imported(key_id)] })
})

test('a pinned key gets its own algorithm, and is refused when its `alg` does not fit', async () => {
  const base = await keyBase()
  const rsa = (modulusLength: number) =>
    generateKeyPairSync('rsa', { modulusLength }).privateKey.export({ format: 'jwk' })
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey.export({ format: 'jwk' })
  for (const jwk of [
    { ...ec, alg: 'RS256' },
    { ...ec, alg: 'ES256' },
    { ...rsa(2048), alg: 'ES384' },
    rsa(1024),
  ])
    await expect(pinKey(base, jwk)).rejects.toMatchObject({ status: 422 })
  expect(await stateOf(base)).toEqual({ keys: [], events: [] })
  const pinned = [ec, { ...ec, alg: 'ES384' }, rsa(2048), { ...rsa(2048), alg: 'RS512' }]
  for (const [i, jwk] of pinned.entries()) await pinKey(base, { ...jwk, kid: `key-${i}` })
  expect((await stateOf(base)).keys.map(({ alg }) => alg)).toEqual(['ES384', 'ES384', 'RS256', 'RS512'])
})
