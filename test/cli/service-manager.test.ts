/**
 * Tests a server on a machine without systemd-notify. The service manager expects a message from the server.
 */
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { serveExecutable } from '#test/support/executable.ts'
import { until } from '#test/support/until.ts'

test('when the service manager cannot be notified, the log says so and the server serves', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  await using server = await serveExecutable({ PATH: folder, NOTIFY_SOCKET: '/run/notify' })
  await until(() => server.output().includes('systemd-notify'))
  expect((await fetch(`${server.url}/readyz`)).status).toBe(200)
  server.signal('SIGTERM')
  expect(await server.exited).toBe(0)
  rmSync(folder, { recursive: true })
})
