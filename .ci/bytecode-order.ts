// Records which functions the starts of `serve` and `exec` use: `bun run order:generate`. The build places
// their bytecode together, so a start reads 3 MiB less of the executable. A build can use the record of an
// older version. It then places functions that have changed since that version after all recorded functions.
// https://bun.com/docs/bundler/executables#profile-guided-bytecode-layout

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const EXECUTABLE = join(import.meta.dir, '../dist/gatehouse')
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-order-'))
const file = join(folder, 'record')

/**
 * Runs a command until it ends or prints a ready line. Returns the lines of the record that Bun has written.
 */
const record = async (...args: string[]): Promise<string[]> => {
  const child = Bun.spawn([EXECUTABLE, ...args], {
    env: { BUN_BYTECODE_ORDER_OUT: file, GATEHOUSE_DATA_DIR: join(folder, 'data'), GATEHOUSE_PORT: '0' },
    stderr: 'inherit',
  })
  for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream()))
    if (chunk.includes('"ready"')) break
  child.kill()
  if ((await child.exited) !== 0) throw new Error(`${args.join(' ')} failed`)
  // Lines of the kinds K and S name single constants. They are left out, because they are 95 % of the record
  // and their order saves nothing.
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter(line => /^[vFMN]/.test(line))
}

// The first start makes the instance. It is no usual start, so its record is not used.
await record('serve')
const lines = [...(await record('serve')), ...(await record('exec', '--', '/bin/true'))]
rmSync(folder, { recursive: true })
writeFileSync(join(import.meta.dir, 'bytecode.order'), `${[...new Set(lines)].join('\n')}\n`)
