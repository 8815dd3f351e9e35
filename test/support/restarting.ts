import type { Config } from '#src/config.ts'
import { openCore } from '#src/operations/core.ts'
import type { Store } from '#src/storage/store.ts'
import { openApp, type TestApp } from './app.ts'
import { openBeside } from './store.ts'

/**
 * Returns a server that restarts for every request, so that each step of a flow finds only stored state
 * (R-24).
 */
export const restarting = (app: TestApp): Pick<TestApp, 'call' | 'context'> => ({
  context: app.context,
  call: async (path, { ip = '127.0.0.1', ...init } = {}) => {
    const base = app.context
    const store = await openBeside((base.store as Store & { path: string }).path)
    try {
      const { fetch } = await openApp(openCore({ ...base, store }))
      const request = new Request(new URL(path, base.config.url), { redirect: 'manual', ...init })
      return await fetch(request, { requestIP: () => ({ address: ip, port: 40_000, family: 'IPv4' }) })
    } finally {
      await store.close()
    }
  },
})

/** Returns the same server after a restart with other settings. */
export const withSettings = async (
  app: TestApp,
  settings: Partial<Config>,
): Promise<Pick<TestApp, 'call' | 'context'>> => {
  const { fetch, context } = await openApp({
    ...app.context,
    config: { ...app.context.config, ...settings },
  })
  const call: TestApp['call'] = async (path, { ip = '127.0.0.1', ...init } = {}) =>
    fetch(new Request(new URL(path, context.config.url), { redirect: 'manual', ...init }), {
      requestIP: () => ({ address: ip, port: 40_000, family: 'IPv4' }),
    })
  return { call, context }
}
