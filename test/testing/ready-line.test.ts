import { expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startGatehouse } from '#src/testing/process.ts'

test('a ready line that arrives in several parts is read as a whole', async () => {
  const executable = join(mkdtempSync(join(tmpdir(), 'gatehouse-')), 'gatehouse')
  // No pipe passes on a megabyte at once.
  const ready = { event: 'ready', url: 'http://localhost:1', password: 'x'.repeat(1024 * 1024) }
  writeFileSync(`${executable}.json`, `a line before\n${JSON.stringify(ready)}\n`)
  writeFileSync(executable, `#!/bin/sh\nexec cat "$0.json" -\n`)
  chmodSync(executable, 0o755)
  const { url, password, close } = await startGatehouse({ executable })
  await close()
  expect([url, password.length]).toEqual([ready.url, ready.password.length])
})
