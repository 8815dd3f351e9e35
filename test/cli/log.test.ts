import { expect, test } from 'bun:test'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// Reads of a named pipe without a writer keep all threads busy that write asynchronously.
const program = `
  import { readFile, writeSync } from 'node:fs'
  import { openLog } from '#src/cli/log.ts'
  const { log, flush } = await openLog('info')
  for (let n = 0; n < 64; n++) readFile(process.argv.at(-1), () => {})
  log.info({ event: 'config' })
  flush()
  writeSync(1, 'ready\\n')
  log.info({ event: 'stopped' })
  flush()
  process.exit(0)`

test('a flush of the log writes the collected lines before it returns', async () => {
  const pipe = join(mkdtempSync(join(tmpdir(), 'gatehouse-')), 'pipe')
  await Bun.$`mkfifo ${pipe}`
  const child = Bun.spawn([process.execPath, '-e', program, pipe], { cwd: join(import.meta.dir, '../..') })
  const lines = (await new Response(child.stdout).text()).trim().split('\n')
  expect(lines.map(line => (line.startsWith('{') ? JSON.parse(line).event : line))).toEqual([
    'config',
    'ready',
    'stopped',
  ])
})
