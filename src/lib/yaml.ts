import { closeSync, openSync, readSync } from 'node:fs'
import type { Document, Pair } from 'yaml'

/**
 * Limit of the library. For each anchor, the library multiplies the number of its uses, including its
 * definition, by the largest such product of the anchors that are used within it. No product may exceed the
 * limit, because nested aliases could otherwise expand to gigabytes.
 */
const MAX_ALIASES = 10_000
/**
 * Maximum number of values after aliases are expanded. A seed file of 100,000 users has a tenth of this
 * number.
 */
const MAX_VALUES = 8_000_000
/**
 * Maximum number of keys of one mapping. The number is limited, because looking up a key reads all keys
 * before it. A mapping in a seed file has fewer than a hundred.
 */
const MAX_KEYS = 10_000
/** Maximum number of levels; a seed file has fewer than ten. */
const MAX_DEPTH = 100
const CHUNK = 65_536

/** The error for a text that is not valid YAML or exceeds a limit. */
export class YamlError extends Error {
  /** Line number from 1; undefined when the place of the error is not known. */
  readonly line: number | undefined
  constructor(message: string, line?: number) {
    super(message)
    this.line = line
  }
}

/** A parsed YAML document. */
export interface Yaml {
  value: unknown
  /** Returns the line number, from 1, of the value at `path` or of its nearest parent. */
  lineOf(path: readonly PropertyKey[]): number | undefined
}

/**
 * Parses YAML 1.2, which includes JSON. The value has no cycle and a limited size, so reading it takes
 * bounded time.
 *
 * @param options `areScalarsTexts` keeps the written text of each scalar except null, such as `007` and
 * `true`
 * @throws YamlError for invalid YAML and for a value beyond a limit
 */
export const parseYaml = (text: string, options: { areScalarsTexts?: boolean } = {}): Yaml => {
  // Loaded lazily, because the import takes milliseconds and most starts read no YAML file.
  const { isNode, LineCounter, parseDocument } = require('yaml') as typeof import('yaml')
  const lineCounter = new LineCounter()
  // `wrongKey` finds repeated keys. With `uniqueKeys`, the library would compare each key with all earlier
  // keys, which takes half a minute for 40,000 keys.
  const document = parseDocument(text, {
    lineCounter,
    logLevel: 'error',
    uniqueKeys: false,
    ...(options.areScalarsTexts && { schema: 'failsafe', customTags: ['null'] }),
  })
  const [error] = document.errors
  if (error) throw new YamlError(reasonOf(error), error.linePos?.[0].line)
  const wrong = wrongKey(document)
  if (wrong) throw new YamlError(wrong.reason, lineCounter.linePos(wrong.at).line)
  const lineOf = (path: readonly PropertyKey[]): number | undefined => {
    for (let length = path.length; length >= 0; length--) {
      const node = document.getIn(path.slice(0, length), true)
      if (isNode(node) && node.range) return lineCounter.linePos(node.range[0]).line
    }
    return undefined
  }
  try {
    const value = document.toJS({ maxAliasCount: MAX_ALIASES })
    requireBounded(value)
    return { value, lineOf }
  } catch (error) {
    throw error instanceof YamlError ? error : new YamlError(reasonOf(error))
  }
}

/**
 * Returns the reason and the position of a wrong key: a key that its mapping already has, or the first key
 * beyond `MAX_KEYS` in a mapping.
 */
const wrongKey = ({ contents }: Document): { reason: string; at: number } | undefined => {
  const { isCollection, isMap, isPair, isScalar } = require('yaml') as typeof import('yaml')
  const rest: unknown[] = [contents]
  for (let node = rest.pop(); node; node = rest.pop()) {
    if (isPair(node)) rest.push(node.value, node.key)
    if (!isCollection(node)) continue
    for (const item of node.items) if (isPair(item) || isCollection(item)) rest.push(item)
    if (!isMap(node)) continue
    const seen = new Set<unknown>()
    for (const { key } of node.items as Pair[]) {
      const size = seen.size
      seen.add(isScalar(key) ? key.value : key)
      const reason =
        seen.size === size
          ? 'Map keys must be unique.'
          : seen.size > MAX_KEYS
            ? `More than ${MAX_KEYS} keys in a mapping.`
            : undefined
      if (reason) return { reason, at: isScalar(key) ? (key.range?.[0] ?? 0) : 0 }
    }
  }
  return undefined
}

/**
 * Returns the first line of an error's message without the position, which the caller adds in its own format.
 */
const reasonOf = (error: unknown): string => {
  const [reason = ''] = (error as Error).message.split('\n')
  if (/call stack/.test(reason)) return `Nested deeper than ${MAX_DEPTH} levels.`
  if (/^Excessive alias/.test(reason)) return `More than ${MAX_ALIASES} uses of anchors.`
  return `${reason.replace(/ at line \d+, column \d+:?$/, '').replace(/\.$/, '')}.`
}

const requireBounded = (root: unknown): void => {
  let count = 1
  let level = [root]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH)
      throw new YamlError(`Nested deeper than ${MAX_DEPTH} levels, or an alias within its own anchor.`)
    const next: unknown[] = []
    for (const value of level)
      if (typeof value === 'object' && value !== null)
        for (const member of Object.values(value)) {
          if (++count > MAX_VALUES)
            throw new YamlError(`More than ${MAX_VALUES} values, counting each value again for each alias.`)
          if (typeof member === 'object') next.push(member)
        }
    level = next
  }
}

/**
 * Reads a text file, or standard input for `-`, of at most `largest` bytes.
 *
 * @throws YamlError for a larger file; errors of the file system pass through
 */
export const readBounded = (file: string, largest: number): string => {
  const fd = file === '-' ? 0 : openSync(file, 'r')
  try {
    const chunks: Buffer[] = []
    for (let total = 0; ; ) {
      const chunk = Buffer.alloc(CHUNK)
      const count = readChunk(fd, chunk)
      if (count === 0) return Buffer.concat(chunks).toString()
      chunks.push(chunk.subarray(0, count))
      total += count
      if (total > largest) throw new YamlError(`Larger than ${largest / 1024} KiB.`)
    }
  } finally {
    if (fd !== 0) closeSync(fd)
  }
}

/** Retries on EAGAIN, because standard input may be a non-blocking pipe. */
const readChunk = (fd: number, chunk: Buffer): number => {
  for (;;)
    try {
      return readSync(fd, chunk, 0, chunk.length, null)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
      Bun.sleepSync(5)
    }
}
