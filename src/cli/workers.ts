import { existsSync, readFileSync } from 'node:fs'
import { type Config, ConfigError } from '#src/config.ts'
import { SECOND } from '#src/lib/duration.ts'
import type { Logger } from '#src/lib/log.ts'
import { joinMetrics } from '#src/lib/metrics.ts'
import { holdInstalled, runningProgram } from '#src/lib/program.ts'
import { freePort } from './listen.ts'
import { openLog } from './log.ts'
import { announce, type Ready, stopSignal, tellServiceManager } from './server.ts'
import { startWorker, type WorkerProcess, type WorkerRole } from './worker-process.ts'

/**
 * Milliseconds before a worker that has ended is started again. The wait is `first` when the worker ran for
 * `soon` or longer. Otherwise the wait is twice the previous wait, but at most `most`. A worker that cannot
 * start thus takes little CPU time.
 */
const RESTART = { first: 100, most: 30 * SECOND, soon: 10 * SECOND }

/**
 * Runs `workers` servers that share the port (SO_REUSEPORT: the kernel gives each connection to one of them).
 * This process forwards nothing, because forwarding a request would cost as much as answering a request for
 * the key set. A worker that ends is started again. SIGHUP replaces the workers one by one: a worker ends
 * when its successor answers, so a changed settings file, certificate or executable takes effect without a
 * pause. The process ends with code 0 when all workers have stopped. If the first worker does not start, the
 * process ends with the exit code of this worker.
 *
 * @throws ConfigError when the system cannot share a port, or the address cannot be used
 */
export const superviseWorkers = async (config: Config, file: string | undefined): Promise<void> => {
  if (process.platform !== 'linux')
    throw new ConfigError('workers: more than 1 needs Linux, whose kernel shares a port among processes.')
  const { workers } = config
  const { log, flush, close } = await openLog(config.log_level, true)
  const port = freePort(config)
  const pool = openPool(log, role =>
    startWorker({ ...role, log, port, workers, file, allMetrics: () => pool.metrics() }),
  )
  const stopped = stopSignal()
  const started = Promise.withResolvers<void>()
  let replacing = started.promise
  process.on('SIGHUP', () => {
    replacing = replacing.then(pool.replace)
  })
  /** Starts all workers. Resolves to the first worker, or to undefined when the pool stops first. */
  const startAll = async (): Promise<Ready | undefined> => {
    const first = pool.start(1)
    const ready = await first.ready.catch(() => undefined)
    if (pool.isStopping()) return undefined
    if (!ready) {
      flush()
      // The reason has already been printed, by the worker or by `startWorker`.
      process.exit(await first.exited)
    }
    await Promise.allSettled(Array.from({ length: workers - 1 }, (_, i) => pool.start(i + 2).ready))
    return ready
  }
  const ready = await Promise.race([startAll(), stopped])
  if (ready) {
    started.resolve()
    if (resetsConnections())
      log.info(
        { event: 'config' },
        'a connection that is opened while a worker is replaced may be reset: set sysctl net.ipv4.tcp_migrate_req to 1 to prevent this',
      )
    flush()
    announce(ready)
    tellServiceManager(log)
  }

  await stopped
  await pool.stop()
  log.info({ event: 'stopped' })
  await close()
  process.exit(0)
}

/** Returns a pool of workers, numbered from 1. */
const openPool = (log: Logger, startOne: (role: WorkerRole) => WorkerProcess) => {
  const workers = new Map<number, WorkerProcess>()
  let isStopping = false

  /**
   * Starts the worker again each time it ends, until `replace` replaces the worker or the pool stops.
   * `command` returns the command that starts the worker's program, so that the worker keeps its version even
   * after an upgrade.
   */
  const keep = async (number: number, worker: WorkerProcess, command: () => string[]): Promise<void> => {
    workers.set(number, worker)
    let wait = RESTART.first
    for (let current = worker, started = Date.now(); ; started = Date.now()) {
      const code = await current.exited
      if (isStopping || workers.get(number) !== current) return
      wait = Date.now() - started < RESTART.soon ? Math.min(wait * 2, RESTART.most) : RESTART.first
      log.error({ event: 'worker', worker: number, code, ms: wait }, 'a worker ended and is started again')
      await Bun.sleep(wait)
      if (isStopping || workers.get(number) !== current) return
      current = startOne({ program: command(), isFirst: false, upgrades: false })
      workers.set(number, current)
    }
  }
  /**
   * Replaces a worker by a new worker of the installed version. Rejects when the new worker does not start.
   */
  const replaceOne = async (number: number): Promise<void> => {
    const { command, release } = holdInstalled()
    // No new worker upgrades the schema, because the old workers still need the old schema.
    const next = startOne({ program: command(), isFirst: number === 1, upgrades: false })
    await next.ready.catch(error => {
      release()
      throw error
    })
    if (isStopping) await next.end()
    // The old worker is looked up only now, because `keep` may have restarted it while the new worker
    // started.
    const old = workers.get(number)
    void keep(number, next, command).finally(release)
    await old?.end()
  }
  return {
    start: (number: number): WorkerProcess => {
      const isFirst = number === 1
      const worker = startOne({ program: runningProgram(), isFirst, upgrades: isFirst })
      void keep(number, worker, runningProgram)
      return worker
    },
    /**
     * Replaces the workers one by one. When a new worker does not start, the remaining old workers continue
     * to answer.
     */
    replace: async (): Promise<void> => {
      for (const number of [...workers.keys()]) {
        const failure = await replaceOne(number).catch((error: Error) => error)
        if (isStopping) return
        if (failure) {
          const said = { event: 'worker', worker: number, reason: failure.message }
          return log.error(said, 'the new worker did not start; the old ones stay')
        }
      }
      log.info({ event: 'worker', workers: workers.size }, 'all workers were replaced')
    },
    metrics: async (): Promise<string> =>
      joinMetrics(
        await Promise.all(
          [...workers].map(async ([number, { metrics }]) => [number, await metrics()] as const),
        ),
      ),
    isStopping: () => isStopping,
    stop: async (): Promise<void> => {
      isStopping = true
      await Promise.all([...workers.values()].map(worker => worker.end()))
    },
  }
}

/**
 * True when `tcp_migrate_req` is off. With this setting the kernel hands the waiting connections of a closed
 * socket to other sockets on its port: https://docs.kernel.org/networking/ip-sysctl.html. False when the file
 * of the setting is missing: kernels before 5.14 lack it, and systemd's ProcSubset=pid hides it.
 */
const resetsConnections = (): boolean => {
  const file = '/proc/sys/net/ipv4/tcp_migrate_req'
  return existsSync(file) && readFileSync(file, 'utf8').trim() !== '1'
}
