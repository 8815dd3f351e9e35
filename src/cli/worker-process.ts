import type { Subprocess } from 'bun'
import { SECOND } from '#src/lib/duration.ts'
import type { Logger } from '#src/lib/log.ts'
import type { Ready } from './server.ts'
import type { FromWorker, ToWorker } from './worker.ts'

/** A worker that still runs this many milliseconds after SIGTERM is killed. Normally it ends within 2 s. */
const KILL_AFTER = 3 * SECOND
/**
 * Milliseconds within which a worker must send its metrics. Prometheus waits for ten seconds by default. This
 * wait is shorter, so that a worker that hangs does not hide the metrics of the other workers.
 */
const METRICS_WAIT = SECOND

/** A running worker, as its supervisor sees it. */
export interface WorkerProcess {
  /** Rejects when the process cannot be started, or ends before it answers requests. */
  ready: Promise<Ready>
  /** Resolves to the exit code. */
  exited: Promise<number>
  /** Returns the worker's metrics. Returns an empty text when the metrics do not arrive in time. */
  metrics(): Promise<string>
  /** Stops the process. Resolves when it has ended. */
  end(): Promise<void>
}

/** The program of a worker, and duties that only one of the workers has. */
export interface WorkerRole {
  /** True when the worker applies the seed file and makes the set-up link. */
  isFirst: boolean
  /** Command that starts the program. */
  program: readonly string[]
  /**
   * True when the worker upgrades an older schema of the database. If false, the start fails when the schema
   * is older.
   */
  upgrades: boolean
}

interface WorkerOptions extends WorkerRole {
  log: Logger
  port: number
  /** Number of workers. A worker does not read it from the settings file, which may have changed. */
  workers: number
  /** Settings file. */
  file: string | undefined
  /** Returns the metrics of all workers. */
  allMetrics(): Promise<string>
}

/**
 * Returns a worker that has already ended, because its program cannot be run. This happens while a package
 * manager replaces the program.
 */
const notRun = (error: unknown): WorkerProcess => {
  const ready = Promise.reject(error)
  ready.catch(() => {})
  return { ready, exited: Promise.resolve(1), metrics: async () => '', end: async () => {} }
}

/** Starts a worker. */
export const startWorker = (options: WorkerOptions): WorkerProcess => {
  try {
    return spawnWorker(options)
  } catch (error) {
    const reason = (error as Error).message
    options.log.error({ event: 'worker', reason }, 'the program of a worker cannot be run')
    return notRun(error)
  }
}

const spawnWorker = ({
  program,
  isFirst,
  upgrades,
  port,
  workers,
  file,
  allMetrics,
}: WorkerOptions): WorkerProcess => {
  const ready = Promise.withResolvers<Ready>()
  const asked: ((text: string) => void)[] = []
  const child: Subprocess = Bun.spawn(
    [
      ...[...program, 'worker'],
      ...(isFirst ? ['--first'] : []),
      ...(upgrades ? ['--upgrade'] : []),
      ...(file ? ['--config', file] : []),
    ],
    {
      env: {
        ...process.env,
        GATEHOUSE_PORT: String(port),
        GATEHOUSE_WORKERS: String(workers),
        NOTIFY_SOCKET: undefined,
      },
      stdio: ['ignore', 'inherit', 'inherit'],
      ipc: (message: FromWorker) => {
        if (message.type === 'ready') ready.resolve(message.ready)
        else if (message.type === 'metrics') for (const answer of asked.splice(0)) answer(message.text)
        else void allMetrics().then(text => tell({ type: 'all-metrics', text }))
      },
    },
  )
  const tell = (message: ToWorker): void => {
    try {
      child.send(message)
    } catch {
      // The worker has just ended, so it does not need the message.
    }
  }
  child.exited.then(code => ready.reject(new Error(`a worker ended with exit code ${code}`)))
  // Nothing awaits `ready` of a restarted worker. Without this handler a rejection of `ready` would end the
  // supervisor.
  ready.promise.catch(() => {})
  return {
    ready: ready.promise,
    exited: child.exited,
    metrics: () => {
      const { promise, resolve } = Promise.withResolvers<string>()
      asked.push(resolve)
      tell({ type: 'collect' })
      return Promise.race([promise, Bun.sleep(METRICS_WAIT).then(() => '')])
    },
    end: async () => {
      child.kill('SIGTERM')
      const killer = setTimeout(() => child.kill('SIGKILL'), KILL_AFTER)
      await child.exited
      clearTimeout(killer)
    },
  }
}
