import { expect, test } from 'bun:test'
import { decodeProtectedHeader } from 'jose'
import { openKeys } from '#src/tokens/keys.ts'
import { revokeKey } from '#src/tokens/rotation.ts'
import { keyBase } from './key-base.ts'

test('keys that change while they are read are read again', async () => {
  const base = await keyBase()
  let during = () => Promise.resolve()
  const read: typeof base.store.read = async work => {
    const found = await base.store.read(work)
    const change = during
    during = () => Promise.resolve()
    await change()
    return found
  }
  const keys = await openKeys({ ...base, store: { ...base.store, read } })
  await keys.ready()
  const signer = async () => decodeProtectedHeader(await keys.sign({}, 'ES256', 'JWT')).kid ?? ''
  const old = await signer()
  base.touched()
  during = () => revokeKey(base, old)
  expect(await signer()).not.toBe(old)
})
