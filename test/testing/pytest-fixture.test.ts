import { expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const script = `
import sys, types
sys.modules["pytest"] = types.SimpleNamespace(fixture=lambda **_: lambda function: function)
import gatehouse_pytest
server = gatehouse_pytest.start()
print(server.url)
server.stop()
`

test('the pytest fixture finds the ready line behind lines of the log', async () => {
  const executable = join(mkdtempSync(join(tmpdir(), 'gatehouse-')), 'gatehouse')
  const ready = {
    event: 'ready',
    url: 'http://localhost:1',
    local_url: 'http://localhost:1',
    client_id: 'dev-service',
    client_secret: 'dev-secret',
    password: 'secret',
    control_token: 'token',
    ca_file: null,
  }
  const warning = { level: 'warn', event: 'geoip', msg: 'cannot read geoip_file' }
  writeFileSync(`${executable}.json`, `${JSON.stringify(warning)}\n${JSON.stringify(ready)}\n`)
  writeFileSync(executable, `#!/bin/sh\nexec cat "$0.json" -\n`)
  chmodSync(executable, 0o755)
  const child = Bun.spawn(['python3', '-c', script], {
    env: {
      PATH: process.env.PATH ?? '',
      PYTHONPATH: join(import.meta.dir, '../../.ci/package'),
      PYTHONDONTWRITEBYTECODE: '1',
      SERVICE_EXECUTABLE: executable,
    },
    stdout: 'pipe',
    stderr: 'inherit',
  })
  expect(await new Response(child.stdout).text()).toBe('http://localhost:1\n')
})
