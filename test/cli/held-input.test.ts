import { describe, expect, test } from 'bun:test'
import { holdInput } from '#src/cli/held-input.ts'
import { MAX_SEED_BYTES } from '#src/seed/file.ts'

/** Yields the texts as chunks. The input then stays open until `end` is called. */
const inputOf = (texts: string[]) => {
  const open = Promise.withResolvers<void>()
  const chunks = async function* () {
    yield* texts.map(text => new TextEncoder().encode(text))
    await open.promise
  }
  return { chunks: chunks(), end: open.resolve }
}

const isPending = async (promise: Promise<unknown>) =>
  (await Promise.race([promise, Promise.resolve('pending')])) === 'pending'

describe('gatehouse dev --until-input-ends', () => {
  test.each([
    ['at once', ['a: 1\n...\nb: 2\n']],
    ['in parts', ['a: 1', '\n', '.', '..', '\n', 'b: 2']],
    ['with the line ends of Windows', ['a: 1\n..', '.\r', '\n']],
  ])('the seed is the text before the line ..., which arrives %s', async (_, texts) => {
    const { chunks, end } = inputOf(texts)
    const { seed, ended } = holdInput(true, chunks)
    expect(await seed).toBe('a: 1')
    expect(await isPending(ended)).toBe(true)
    end()
    await ended
  })

  test('a first line ... is an empty seed, and dots within a line end nothing', async () => {
    expect(await holdInput(true, inputOf(['...\n']).chunks).seed).toBe('')
    const { chunks, end } = inputOf(['a: x...\nb: ...\n'])
    const { seed, ended } = holdInput(true, chunks)
    end()
    expect(await seed).toBe('a: x...\nb: ...\n')
    await ended
  })

  test('a character that is split between two chunks stays whole', async () => {
    const bytes = new TextEncoder().encode('a: é\n...\n')
    const chunks = (async function* () {
      yield bytes.subarray(0, 4)
      yield bytes.subarray(4)
    })()
    expect(await holdInput(true, chunks).seed).toBe('a: é')
  })

  test('a seed that is too large is refused, and the input counts as ended', async () => {
    const { seed, ended } = holdInput(true, inputOf(['x'.repeat(MAX_SEED_BYTES + 1)]).chunks)
    await expect(seed).rejects.toThrow('-: Larger than 16384 KiB.')
    await ended
  })

  test('an input that cannot be read counts as ended', async () => {
    const chunks = {
      [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new Error('EBADF')) }),
    }
    await holdInput(false, chunks).ended
  })
})
