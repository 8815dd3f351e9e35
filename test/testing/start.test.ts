import { expect, test } from 'bun:test'
import { join } from 'node:path'

test('a script ends when it has stopped its server', async () => {
  const start = join(import.meta.dir, '../../src/testing/start.ts')
  const script = `const { start } = await import(${JSON.stringify(start)})
    await (await start()).stop()
    console.log('stopped')
    setTimeout(() => console.log('still running'), 1000).unref()`
  const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe', stderr: 'inherit' })
  expect(await new Response(child.stdout).text()).toBe('stopped\n')
  expect(await child.exited).toBe(0)
})
