import { loadConfig } from '#src/config.ts'
import { rememberStart } from './last-start.ts'
import { type Ready, serveAlone } from './server.ts'

/** Message of a worker to its supervisor. */
export type FromWorker =
  | { type: 'ready'; ready: Ready }
  /** Answer to `collect`: the metrics of this worker. */
  | { type: 'metrics'; text: string }
  /** Asks for the metrics of all workers, because this worker got a request for `/metrics`. */
  | { type: 'all-metrics' }

/** Message of the supervisor to a worker. */
export type ToWorker = { type: 'collect' } | { type: 'all-metrics'; text: string }

const tell = (message: FromWorker): void => void process.send?.(message)

/**
 * Runs one of several servers that share a port. The worker ends when its supervisor ends, because only the
 * supervisor can replace or stop the worker. Only the supervisor writes the ready line and reports to the
 * service manager. The first worker stores the settings for commands, because the settings file may have
 * changed since the supervisor read it.
 */
export const worker = (options: { config?: string; first?: boolean; upgrade?: boolean }): Promise<void> => {
  process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'))
  const loaded = loadConfig(process.env, options.config)
  return serveAlone(loaded, {
    isFirst: options.first ?? false,
    upgrades: options.upgrade ?? false,
    onReady: ready => {
      if (options.first) rememberStart({ ...loaded.config, url: ready.url }, ready.port)
      tell({ type: 'ready', ready })
    },
    metrics: own => {
      const waiting: ((text: string) => void)[] = []
      process.on('message', (message: ToWorker) => {
        if (message.type === 'collect') tell({ type: 'metrics', text: own() })
        else for (const answer of waiting.splice(0)) answer(message.text)
      })
      return () => {
        const { promise, resolve } = Promise.withResolvers<string>()
        if (waiting.push(resolve) === 1) tell({ type: 'all-metrics' })
        return promise
      }
    },
  })
}
