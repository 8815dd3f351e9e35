import { loadConfig } from '#src/config.ts'
import { rememberStart } from './last-start.ts'
import { announce, serveAlone, tellServiceManager } from './server.ts'

/** Runs the server. The process ends with code 0 when the server has stopped. */
export const serve = async (options: { config?: string }): Promise<void> => {
  const loaded = loadConfig(process.env, options.config)
  const { config } = loaded
  if (config.workers > 1) return (await import('./workers.ts')).superviseWorkers(config, options.config)
  await serveAlone(loaded, {
    isFirst: true,
    upgrades: true,
    onReady: (ready, log) => {
      rememberStart({ ...config, url: ready.url }, ready.port)
      announce(ready)
      tellServiceManager(log)
    },
  })
}
