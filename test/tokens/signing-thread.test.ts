import { expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { verifyWith } from '#src/tokens/signature.ts'
import { openThread } from '#src/tokens/signing-thread.ts'

const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const isGood = (signature: string, input: string) => verifyWith(publicKey, 'RS256', input, signature)

/**
 * Returns a thread that is ready. The first signatures start the thread, so this function signs until the
 * thread is ready.
 */
const startedThread = async () => {
  const thread = openThread({ cores: 2 })
  for (let i = 0; !thread.isReady(); i++) {
    expect(isGood(await thread.sign('one', privateKey, 'RS256', `${i}`), `${i}`)).toBe(true)
    await new Promise(resolve => setImmediate(resolve))
  }
  return thread
}

test('the main thread signs until the signing thread is ready, which then takes over', async () => {
  const thread = await startedThread()
  const signature = thread.sign('one', privateKey, 'RS256', 'text')
  expect(signature).toBeInstanceOf(Promise)
  expect(isGood(await signature, 'text')).toBe(true)
  thread.stop()
})

test('another key under the same id replaces the first', async () => {
  const thread = await startedThread()
  const other = generateKeyPairSync('rsa', { modulusLength: 2048 })
  await thread.sign('one', privateKey, 'RS256', 'text')
  const signature = await thread.sign('one', other.privateKey, 'RS256', 'text')
  expect(verifyWith(other.publicKey, 'RS256', 'text', signature)).toBe(true)
  thread.stop()
})

test('a thread that dies with work pending loses nothing, and a new one takes over', async () => {
  const thread = await startedThread()
  const inputs = Array.from({ length: 20 }, (_, i) => `work ${i}`)
  const signatures = inputs.map(input => thread.sign('one', privateKey, 'RS256', input))
  thread.stop()
  const made = await Promise.all(signatures)
  expect(made.every((signature, i) => isGood(signature, inputs[i] ?? ''))).toBe(true)
  expect(typeof thread.sign('one', privateKey, 'RS256', 'after')).toBe('string')
})

test('a machine with one core gets no thread', () => {
  const thread = openThread({ cores: 1 })
  expect(typeof thread.sign('one', privateKey, 'RS256', 'text')).toBe('string')
  expect(typeof thread.sign('one', privateKey, 'RS256', 'text')).toBe('string')
  expect(thread.isReady()).toBe(false)
})
