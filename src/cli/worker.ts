import { loadConfig } from '#src/config.ts'
import { VERSION_LINE } from '#src/lib/version.ts'
import { type Ready, serveAlone } from './server.ts'

/** Facts about a worker that has started, with its version (`VERSION_LINE`). */
export type ReadyWorker = Ready & { version: string }

/** Message of a worker to its supervisor. */
export type FromWorker =
  | { type: 'ready'; ready: ReadyWorker }
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
 * service manager.
 */
export const worker = (options: { config?: string; first?: boolean; upgrade?: boolean }): Promise<void> => {
  process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'))
  return serveAlone(loadConfig(process.env, options.config), {
    isFirst: options.first ?? false,
    upgrades: options.upgrade ?? false,
    onReady: ready => tell({ type: 'ready', ready: { ...ready, version: VERSION_LINE } }),
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
