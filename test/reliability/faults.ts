import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { testWith } from '#test/support/debian.ts'

/** Declares a test with the faulty disk of `faults.c`. Such a test needs a C compiler. */
export const testWithFaults = testWith('gcc', '/usr/bin/gcc')

/** True in the long form of the tests, which takes an hour: `bun run test:reliability`. */
export const LONG = process.env.RELIABILITY === 'long'

/** Prints a measured figure as a line that `bun run test:reliability` puts into its summary. */
export const figure = (row: string, text: string): void => console.log(`${row}  ${text}`)

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-faults-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

const compile = async (): Promise<string> => {
  const library = join(folder, 'faults.so')
  await Bun.$`gcc -O1 -shared -fPIC -o ${library} ${join(import.meta.dir, 'faults.c')} -ldl -lpthread`.quiet()
  return library
}
let library: Promise<string> | undefined

/** Compiles the faulty disk and returns the path of the library. */
export const faultsLibrary = (): Promise<string> => {
  library ??= compile()
  return library
}

const faults = {
  none: 0,
  'slow sync': 1,
  'failing sync': 2,
  full: 3,
  'failing write': 4,
  'read-only': 5,
} as const

/**
 * Returns environment variables and a switch for faults. A process with these variables gets the chosen disk
 * fault on its files below `dir`.
 */
export const faultyDisk = async (dir: string) => {
  const path = join(folder, `${crypto.randomUUID()}.control`)
  const control = openSync(path, 'w+')
  const set = (fault: keyof typeof faults, ms = 0): void =>
    void writeSync(control, new Uint8Array(new Int32Array([faults[fault], ms]).buffer), 0, 8, 0)
  set('none')
  return {
    env: { LD_PRELOAD: await faultsLibrary(), FAULTS_DIR: dir, FAULTS_CONTROL: path },
    set,
    [Symbol.dispose]: () => closeSync(control),
  }
}
