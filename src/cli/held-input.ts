import { MAX_SEED_BYTES, tooLargeSeed } from '#src/seed/file.ts'

/** Line that ends a YAML document while its stream stays open (YAML 1.2.2, section 9.1.2). */
const DOCUMENT_END = /(?:^|\n)\.\.\.\r?\n/g
/** Maximum number of characters that `DOCUMENT_END` matches. */
const LONGEST_END = 6

/** Standard input that the parent process keeps open as long as it needs the server. */
export interface HeldInput {
  /** Text before the first line `...`, or all text. Undefined when standard input contains no seed. */
  seed: Promise<string> | undefined
  /** Resolves when the parent process closes the input or exits. This includes an exit by SIGKILL. */
  ended: Promise<void>
}

/**
 * Reads standard input until it ends.
 *
 * @param hasSeed true when standard input begins with a seed; the promise `seed` rejects with ConfigError
 *   when the seed is too large
 */
export const holdInput = (
  hasSeed: boolean,
  input: AsyncIterable<Uint8Array> = Bun.stdin.stream(),
): HeldInput => {
  const chunks = input[Symbol.asyncIterator]()
  const seed = hasSeed ? readSeed(chunks) : undefined
  const ended = Promise.resolve(seed).then(() => drain(chunks))
  // A standard input that is closed or cannot be read counts as ended.
  return { seed, ended: ended.catch(() => undefined) }
}

const readSeed = async (chunks: AsyncIterator<Uint8Array>): Promise<string> => {
  const decoder = new TextDecoder()
  let text = ''
  for (let size = 0; ; ) {
    const { done, value } = await chunks.next()
    if (done) return text
    size += value.length
    if (size > MAX_SEED_BYTES) throw tooLargeSeed('-')
    DOCUMENT_END.lastIndex = Math.max(0, text.length - LONGEST_END)
    text += decoder.decode(value, { stream: true })
    const end = DOCUMENT_END.exec(text)
    if (end) return text.slice(0, end.index)
  }
}

const drain = async (chunks: AsyncIterator<Uint8Array>): Promise<void> => {
  while (!(await chunks.next()).done);
}
