import { afterEach, describe, expect, spyOn, test } from 'bun:test'
import { Readable } from 'node:stream'
import { readPassword } from '#src/cli/user.ts'

const { stdin } = process
afterEach(() => Object.defineProperty(process, 'stdin', { value: stdin, configurable: true }))

/** Makes standard input a stream that delivers these bytes, one chunk for each array. */
const inputOf = (chunks: Uint8Array[], more: object = {}): void => {
  const value = Object.assign(Readable.from(chunks, { objectMode: false }), more)
  Object.defineProperty(process, 'stdin', { value, configurable: true })
}

describe('a password on standard input', () => {
  const [bytes, middle] = [Buffer.from('Zürich-horse-7\nrest'), 2]
  const halves = [bytes.subarray(0, middle), bytes.subarray(middle)]

  test('a character that is split between two chunks stays whole', async () => {
    inputOf(halves)
    expect(await readPassword()).toBe('Zürich-horse-7')
  })

  test('the same in a terminal, which shows nothing of it', async () => {
    const shown: unknown[] = []
    const write = spyOn(process.stderr, 'write').mockImplementation((text: unknown) => shown.push(text) > 0)
    const modes: boolean[] = []
    inputOf(halves, { isTTY: true, setRawMode: (isRaw: boolean) => modes.push(isRaw) })
    const password = await readPassword().finally(() => write.mockRestore())
    expect(password).toBe('Zürich-horse-7')
    expect([shown, modes]).toEqual([
      ['New password: ', '\n'],
      [true, false],
    ])
  })

  test('at a terminal Backspace removes a character, Ctrl-U the line, and Ctrl-D ends it', async () => {
    const typed = async (keys: string) => {
      inputOf([Buffer.from(keys)], { isTTY: true, setRawMode: () => {} })
      return readPassword()
    }
    const write = spyOn(process.stderr, 'write').mockImplementation(() => true)
    try {
      expect(await typed('horse-🐎\u007f7\b8\r')).toBe('horse-8')
      expect(await typed('wrong\u0015Correct-horse-7\u0004rest\r')).toBe('Correct-horse-7')
      for (const key of ['\u001b[D', '\u0001', '\0', '\t'])
        await expect(typed(`horse${key}\r`)).rejects.toThrow('the terminal sent a control key')
    } finally {
      write.mockRestore()
    }
  })
})
