import { fileURLToPath } from 'node:url'
import { connect, get } from './connection.ts'
import { type Duration, measure } from './load.ts'
import { freePort, freshDirectory, removeDirectory, start } from './server-process.ts'

/** Result of `measureFloor` (CPU µs at 8 connections) on the machine on which the limits were measured. */
export const FLOOR = 7

/**
 * Returns the CPU time in µs that Bun.serve needs for a fixed response of 1.5 KB. The result shows the
 * current speed of the machine.
 */
export const measureFloor = async (duration: Duration): Promise<number> => {
  const [directory, port] = [await freshDirectory(), await freePort()]
  const server = await start({
    command: [process.execPath, fileURLToPath(import.meta.url), String(port)],
    env: {},
    port,
    directory,
    probe: '/',
  })
  try {
    const connections = await Promise.all(Array.from({ length: 8 }, () => connect(port)))
    const request = get('/.well-known/openid-configuration')
    const steps = connections.map(connection => async () => {
      await connection.send(request)
    })
    return (await measure({ server: [server.pid], database: () => [] }, steps, duration)).cpu_per_op
  } finally {
    await server.stop()
    await removeDirectory(directory)
  }
}

if (import.meta.main) {
  const body = JSON.stringify({ issuer: 'http://localhost', padding: 'x'.repeat(1_500) })
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'public, max-age=300',
  }
  Bun.serve({
    hostname: '127.0.0.1',
    port: Number(process.argv[2]),
    fetch: () => new Response(body, { headers }),
  })
}
